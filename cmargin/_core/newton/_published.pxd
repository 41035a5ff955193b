"""SmSVM's Algorithms 1 to 4 as a strategy of the driver in ``newton/_driver.pyx``; to be set as its steps."""

from cmargin._core.newton._driver cimport newton_state


cdef void published_start(newton_state *at) noexcept nogil
cdef void published_told(newton_state *at) noexcept nogil
