from cmargin._core.newton._state cimport newton_state


# of a sample: what curvature there will be at the first look, what a look is asked, and how many rows it then had
cdef void foresee_curvature(newton_state *at) noexcept nogil
cdef void ask_for_sample(newton_state *at) noexcept nogil
cdef void count_sample(newton_state *at) noexcept nogil

# a step by products, preconditioned by the curvature of a sample of the rows; or by nothing but the diagonal
cdef void start_preconditioned(newton_state *at) noexcept nogil
cdef void start_products(newton_state *at) noexcept nogil
cdef void told_product(void *driver, const double *product, double share) noexcept nogil

# the step that is found is the last of its kind; or there is none: from the next look on, by a factor
cdef void give_products_up(newton_state *at) noexcept nogil
cdef void start_without_them(newton_state *at) noexcept nogil
