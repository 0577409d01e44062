/* The number of threads of one matrix product, for the whole process. */
#pragma GCC visibility push(default)
#ifdef __APPLE__

/* Accelerate chooses its threads itself. */
void mlxcel_set_blas_threads(int threads) { (void)threads; }
int mlxcel_blas_threads(void) { return 1; }

#else

void scipy_openblas_set_num_threads(int threads);
int scipy_openblas_get_num_threads(void);

void mlxcel_set_blas_threads(int threads) { scipy_openblas_set_num_threads(threads); }
int mlxcel_blas_threads(void) { return scipy_openblas_get_num_threads(); }

#endif
#pragma GCC visibility pop
