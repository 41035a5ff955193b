from cmargin._core.newton._newton cimport newton_state


cdef void start_products(newton_state *at) noexcept nogil
cdef void told_product(void *driver, const double *product, double share) noexcept nogil

# the step that is found is the last of its kind; or there is none: from the next look on, by a factor
cdef void give_products_up(newton_state *at) noexcept nogil
cdef void start_without_them(newton_state *at) noexcept nogil
