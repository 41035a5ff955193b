/* A linear classifier over rows that lie on the ranks of an MPI program: rank 0 drives, every rank answers for its rows.
 *
 *     mpiexec -n 4 ./ranks rows.bin loss l2
 *
 * rows.bin: two int64, n_rows and n_features; n_rows doubles, the classes -1 and +1, times weights; the rows, doubles.
 * Each rank reads its share of them. Rank 0 prints looks, objective and gap, then the weights, the intercept last.
 */
#include <Python.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmargin.h>

typedef struct {
    int64_t n_rows, n_features;      /* of the file */
    int64_t n_here;
    double *code, *values;           /* of this rank */
} share;

static void *must(void *memory) {
    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void must_be(int fine, const char *what) {
    if (!fine) {
        fprintf(stderr, "%s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static share read_share(const char *path, int rank, int n_ranks) {
    share rows;
    int64_t head[2], first;
    FILE *file = fopen(path, "rb");
    must_be(file != NULL && fread(head, sizeof(int64_t), 2, file) == 2, "the file of rows cannot be read");
    rows.n_rows = head[0], rows.n_features = head[1];
    first = rows.n_rows * rank / n_ranks;
    rows.n_here = rows.n_rows * (rank + 1) / n_ranks - first;
    rows.code = must(malloc((rows.n_here + 1) * sizeof(double)));
    rows.values = must(malloc((rows.n_here * rows.n_features + 1) * sizeof(double)));
    fseek(file, (long) (sizeof head + first * sizeof(double)), SEEK_SET);
    must_be(fread(rows.code, sizeof(double), rows.n_here, file) == (size_t) rows.n_here, "the file is cut short");
    fseek(file, (long) (sizeof head + (rows.n_rows + first * rows.n_features) * sizeof(double)), SEEK_SET);
    must_be(fread(rows.values, sizeof(double), rows.n_here * rows.n_features, file)
                == (size_t) (rows.n_here * rows.n_features), "the file is cut short");
    fclose(file);
    return rows;
}

static double weight_of(const share *rows) {
    double total = 0;
    for (int64_t i = 0; i < rows->n_here; i++)
        total += rows->code[i] < 0 ? -rows->code[i] : rows->code[i];
    return total;
}

/* Every rank: hear what rank 0's driver asks, answer for the rows here, add up. 0: nothing went wrong anywhere. */
static int serve(const cmargin_table *cmargin, cmargin_rows *rows, cmargin_newton *newton, ptrdiff_t n_columns) {
    int rank, bytes = (int) cmargin->message_size(n_columns);
    void *message = must(malloc(bytes));
    double *answer = must(malloc((CMARGIN_SUMS + 3 * n_columns + n_columns * n_columns + 2) * sizeof(double)));
    double failed = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (;;) {
        cmargin_request request = {.size = sizeof request};
        ptrdiff_t size;
        if (rank == 0) {
            if (failed || cmargin->newton_ask(newton, &request) != CMARGIN_OK)
                request.kind = CMARGIN_DONE, request.n_columns = n_columns, failed = 1;
            cmargin->request_to_message(&request, message);
        }
        MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        cmargin->request_from_message(message, &request);
        if (request.kind == CMARGIN_DONE)
            break;
        size = cmargin->answer_size(&request);
        /* one number more says on how many ranks it went wrong: all of them leave together */
        for (ptrdiff_t i = 0; i <= size; i++)
            answer[i] = 0;
        answer[size] = cmargin->rows_answer(rows, &request, answer) != CMARGIN_OK;
        MPI_Reduce(rank == 0 ? MPI_IN_PLACE : answer, answer, (int) size + 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0)
            failed = answer[size] != 0 || cmargin->newton_tell(newton, answer, size) != CMARGIN_OK;
    }
    free(message);
    free(answer);
    return rank == 0 && failed;
}

static void print_result(const cmargin_table *cmargin, const cmargin_newton *newton, ptrdiff_t n_columns) {
    cmargin_result result = {.size = sizeof result};
    double *w = must(malloc(n_columns * sizeof(double)));
    cmargin->newton_result(newton, &result, w);
    printf("%d %lld %.17g %.17g\n", result.status, (long long) result.n_looks, result.objective, result.gap);
    for (ptrdiff_t j = 0; j < n_columns; j++)
        printf("%.17g\n", w[j]);
    free(w);
}

int main(int argc, char **argv) {
    const cmargin_table *cmargin;
    cmargin_settings settings = {.size = sizeof settings};
    cmargin_matrix matrix = {.size = sizeof matrix};
    cmargin_newton *newton = NULL;
    cmargin_rows *rows;
    int rank, n_ranks, status;
    share mine;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    must_be(argc == 4, "usage: ranks rows.bin loss l2");
    Py_InitializeEx(0);
    cmargin = cmargin_import();
    if (cmargin == NULL)
        PyErr_Print();
    must_be(cmargin != NULL, "cmargin cannot be imported");

    mine = read_share(argv[1], rank, n_ranks);
    matrix.n_rows = mine.n_here, matrix.n_features = mine.n_features, matrix.values = mine.values;
    matrix.row_stride = mine.n_features, matrix.column_stride = 1, matrix.code = mine.code;
    matrix.intercept = 1, matrix.loss = cmargin->loss_named(argv[2]), matrix.n_threads = 1;
    status = cmargin->rows_new(&matrix, &rows);
    must_be(status == CMARGIN_OK, cmargin->status_text(status));

    cmargin->settings_init(&settings);
    settings.n_features = mine.n_features, settings.n_rows = mine.n_rows;
    settings.loss = matrix.loss, settings.l2 = atof(argv[3]);
    settings.total_weight = weight_of(&mine);
    MPI_Allreduce(MPI_IN_PLACE, &settings.total_weight, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        status = cmargin->newton_new(&settings, &newton);
        must_be(status == CMARGIN_OK, cmargin->status_text(status));
    }

    status = serve(cmargin, rows, newton, mine.n_features + 1);
    if (rank == 0)
        print_result(cmargin, newton, mine.n_features + 1);

    cmargin->newton_free(newton);
    cmargin->rows_free(rows);
    free(mine.code);
    free(mine.values);
    Py_Finalize();
    MPI_Finalize();
    return status;
}
