from cmargin._core.newton._newton cimport newton_state


cdef void start_products(newton_state *at) noexcept nogil
cdef void told_product(void *driver, const double *product, double share) noexcept nogil

# steps by a factor, from the next on
cdef void give_products_up(newton_state *at) noexcept nogil
cdef void start_without_them(newton_state *at) noexcept nogil
