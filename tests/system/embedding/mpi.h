/* Of MPI, what doc/embedding/ranks.c calls, for one rank: so that the example runs where there is no MPI. */
#ifndef ONE_RANK_MPI_H
#define ONE_RANK_MPI_H

#include <stdlib.h>

#define MPI_COMM_WORLD 0
#define MPI_BYTE 1
#define MPI_DOUBLE 8
#define MPI_SUM 0
#define MPI_IN_PLACE ((void *) -1)

static inline int MPI_Init(int *argc, char ***argv) { (void) argc, (void) argv; return 0; }
static inline int MPI_Finalize(void) { return 0; }
static inline int MPI_Abort(int comm, int code) { (void) comm; exit(code); }
static inline int MPI_Comm_rank(int comm, int *rank) { (void) comm; return *rank = 0; }
static inline int MPI_Comm_size(int comm, int *size) { (void) comm; *size = 1; return 0; }
static inline int MPI_Bcast(void *buffer, int count, int type, int root, int comm) {
    (void) buffer, (void) count, (void) type, (void) root, (void) comm;
    return 0;
}
static inline int MPI_Reduce(const void *send, void *receive, int count, int type, int op, int root, int comm) {
    (void) receive, (void) count, (void) type, (void) op, (void) root, (void) comm;
    return send == MPI_IN_PLACE ? 0 : 1;
}
static inline int MPI_Allreduce(const void *send, void *receive, int count, int type, int op, int comm) {
    (void) receive, (void) count, (void) type, (void) op, (void) comm;
    return send == MPI_IN_PLACE ? 0 : 1;
}

#endif
