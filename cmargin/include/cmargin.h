/* cmargin from C: losses, one look at rows in memory, SmSVM's Newton driver, line search, robust location, Psi-transform.
 *
 *     #include <Python.h>
 *     #include <cmargin.h>                               -I of what `cmargin.get_include()` returns
 *
 *     const cmargin_table *cmargin = cmargin_import();   once, holding the GIL; NULL: a Python exception is set
 *
 * From there on no function needs the GIL or touches a Python object. Functions may be called from any thread; a handle
 * is used by one thread at a time. What a function is given it only reads and does not keep, unless "kept" is said of it:
 * such memory must live, and not change, until the handle is freed. What it writes is yours. A handle is freed once, by
 * the function of its name.
 *
 * Every struct that begins with `size` is told it before use:  cmargin_request request = {.size = sizeof request};
 * Functions and fields are only ever added at the end, and signatures do not change as long as CMARGIN_VERSION does not.
 */
#ifndef CMARGIN_H
#define CMARGIN_H

#include <stddef.h>
#include <stdint.h>

#define CMARGIN_VERSION 1

/* what functions with an int return, unless another meaning is said */
enum {
    CMARGIN_OK = 0,
    CMARGIN_BAD_ARGUMENT = -1,   /* a size, a length or a number that cannot be; nothing was done */
    CMARGIN_NO_MEMORY = -2,
    CMARGIN_NOT_FINITE = -3,     /* the sums that were told are not finite, or lead beyond the range of doubles */
    CMARGIN_NOT_ASKED = -4       /* an answer to no question */
};

/* ---------------------------------------------------------------- losses, of the margin z = y <w, x> */

typedef struct {
    double value, slope, curvature;
} cmargin_point;

typedef struct {
    size_t size;
    const char *name;            /* static */
    double at_zero;              /* |F(0)|, and the largest F'', which is F''(0); NaN: not one number */
    double largest_curvature;
    double steepest;             /* root mean square slope, at most, where the mean loss is 1; NaN without a dual */
    double dual_largest;         /* dual variables a = -F'(z) lie between 0 and this; 0: there is no dual */
    int calibrated;              /* 1 + F'(z) is the posterior of the class */
} cmargin_facts;

/* ---------------------------------------------------------------- the driver's questions */

enum {
    CMARGIN_DONE = 0,
    CMARGIN_LOOK = 1,            /* answer: sums[16], gradient[3 p], block[order * order] if with_block */
    CMARGIN_ALONG = 2,           /* answer: value, slope, curvature of  sum s F(u - step * change)  in the step */
    CMARGIN_PRODUCT = 3,         /* answer: rows read, product[p] */
    CMARGIN_EVALUATE = 4         /* answer: sum s F(y <x, row>), F not smoothed; squares[p] = sum s row_j^2 */
};

/* Where in the sums of a look: u = 1 - z, s the weight of a row, a its dual variable. doc/embedding.md has the formulas */
enum {
    CMARGIN_LINE_VALUE = 0,      /* sum s F(u), smoothed by line_width */
    CMARGIN_LINE_SLOPE = 1,      /* its derivative in the step */
    CMARGIN_LOSS = 2,            /* sum s F(u), not smoothed */
    CMARGIN_VALUE = 3,           /* sum s F(u), smoothed by width */
    CMARGIN_DUAL_POS = 4,        /* sum s a over y = +1, and over y = -1 */
    CMARGIN_DUAL_NEG = 5,
    CMARGIN_CURVED = 6,          /* number of rows in the block */
    CMARGIN_CURVATURE = 7,       /* sum s h */
    CMARGIN_GAIN_POS = 8,        /* sum s G(a) over y = +1, and over y = -1; G = -F*(-a); not for the hinge */
    CMARGIN_GAIN_NEG = 9,
    CMARGIN_SUMS = 16            /* their number; the others are 0 */
};

/* Vectors belong to the driver, or to the message the request came in, and stay until the next answer is told. */
typedef struct {
    size_t size;
    int kind;
    int restart;                 /* LOOK: first of all w = 0, so that u = 1 in every row, and */
    int primal;                  /* dual variables are never carried from look to look */
    int new_active;              /* LOOK: columns of the block from here on, n_active of `active`; n_active < 0: all */
    ptrdiff_t n_active;
    const ptrdiff_t *active;     /* ascending */
    ptrdiff_t n_columns;         /* p: features, and the intercept behind them */
    const double *direction;     /* LOOK: (p,); NULL: the direction of the last look, another step */
    double step;                 /* LOOK: w moves by so much of it. ALONG: the same, and nothing moves */
    double line_width;           /* LOOK: smoothing before the step and along it */
    double width;                /* smoothing after it; of ALONG and PRODUCT too */
    double floor;                /* rows of smaller curvature stay out of block (but for its diagonal) and product */
    int with_block;              /* LOOK */
    const double *x;             /* PRODUCT: sum s h row <row, x>, NULL: sum s h row_j^2. EVALUATE: the weights */
} cmargin_request;

/* ---------------------------------------------------------------- rows in memory, of one binary problem */

typedef struct cmargin_rows cmargin_rows;

typedef struct {
    size_t size;
    ptrdiff_t n_rows;
    ptrdiff_t n_features;
    int single;                  /* values are float, not double */
    const void *values;          /* kept: dense, or the entries of CSR rows */
    ptrdiff_t row_stride;        /* dense: in entries, from one row to the next, */
    ptrdiff_t column_stride;     /* and from one column to the next */
    const int64_t *starts;       /* kept: CSR, (n_rows + 1,); NULL for dense */
    const int32_t *columns;      /* kept: CSR with 32-bit indices, else NULL; of a row, no column twice */
    const int64_t *columns_64;   /* kept: CSR with 64-bit indices, else NULL */
    const double *code;          /* kept: (n_rows,) s y, the weight of a row with the sign of its class */
    int intercept;               /* a column of ones follows the features */
    int loss;                    /* see loss_named; "hinge" is smoothed */
    double level;                /* of margin pursuit: gamma and s */
    double scale;
    int n_threads;               /* at least 1; the same bits for any number */
} cmargin_matrix;

/* ---------------------------------------------------------------- SmSVM's Newton driver
 *     minimise  (l2/2) |w|^2 + (1/W) sum s F(y <w, x>) + l1 |w|_1,   W = sum of all s
 */

typedef struct cmargin_newton cmargin_newton;

typedef struct {
    size_t size;
    ptrdiff_t n_features;
    int intercept;               /* 1: a column more, */
    int penalize_intercept;      /* which is penalised like the others */
    ptrdiff_t n_rows;            /* everywhere */
    double total_weight;         /* W, everywhere */
    int loss;                    /* one with a dual, or CMARGIN_BAD_ARGUMENT */
    double l2;
    double l1;
    double tol;                  /* relative duality gap at which to end */
    double max_passes;
    double max_time;             /* seconds from newton_new on */
    double smoothing;            /* of the hinge: first width, and by what a step multiplies it */
    double smoothing_decay;
    int by_products;             /* 1: conjugate gradients instead of the block, for many columns; l1 = 0 */
    const double *start;         /* (p,) to begin with, NULL: 0 */
} cmargin_settings;

enum {                           /* how it ended */
    CMARGIN_WAITING, CMARGIN_RUNNING,
    CMARGIN_CONVERGED,           /* gap <= tol */
    CMARGIN_DECREMENT,           /* l1 = l2 = 0, so no certificate: the Newton decrement says that it is there */
    CMARGIN_WIDTH,
    CMARGIN_STALLED,             /* the smoothing is at its smallest, */
    CMARGIN_ROUNDED,             /* or nothing is left to gain in doubles, and the gap is above tol */
    CMARGIN_STOPPED, CMARGIN_MAX_TIME, CMARGIN_MAX_PASSES
};

typedef struct {
    size_t size;
    int status;
    double objective;            /* at the best weights, F not smoothed; infinite before the first look */
    double gap;                  /* (objective - lower bound) / objective; NaN without a penalty */
    double passes;               /* reads of the rows */
    int64_t n_looks;
} cmargin_result;

/* ---------------------------------------------------------------- line search and location, one number at a time */

typedef struct cmargin_line cmargin_line;

typedef struct {                 /* the root of  sum psi((at - q_i) / scale)  in `at`; of `done` 1, the answer */
    double at;
    double lo;
    double hi;
    double last_step;
    int done;
} cmargin_location;

/* ---------------------------------------------------------------- the functions */

typedef struct {
    int version;                 /* CMARGIN_VERSION, and the size of this struct, of the library */
    size_t size;

    /* static text for a status that a function returned */
    const char *(*status_text)(int status);

    /* The number of "hinge", "squared_hinge", "logistic", ...; CMARGIN_BAD_ARGUMENT: there is no such loss.
     * a, b: width of "smoothed_hinge"; level and scale of "margin_pursuit"; others ignore them. Every finite z. */
    int (*loss_named)(const char *name);
    int (*loss_facts)(int loss, cmargin_facts *facts);
    cmargin_point (*loss_at)(int loss, double z, double a, double b);
    int (*losses)(int loss, ptrdiff_t n, const double *z, double a, double b, double *value, double *slope,
                  double *curvature);
    /* least of F(z) + a z over z, for a = -F'(z); NaN: the loss has no dual */
    double (*dual_gain)(int loss, double a);

    /* Rows in memory and the answers they give. `answer`: answer_size doubles, all of which add up over places. */
    int (*rows_new)(const cmargin_matrix *matrix, cmargin_rows **out);
    int (*rows_answer)(cmargin_rows *rows, const cmargin_request *request, double *answer);
    void (*rows_free)(cmargin_rows *rows);
    ptrdiff_t (*answer_size)(const cmargin_request *request);

    /* A request as bytes, for other processes that run the same build; its vectors, read back, lie in the message. */
    ptrdiff_t (*message_size)(ptrdiff_t n_columns);
    int (*request_to_message)(const cmargin_request *request, void *message);
    int (*request_from_message)(const void *message, cmargin_request *request);

    /* The driver: ask, answer, tell, until kind is CMARGIN_DONE. Asked twice, it asks the same. `out` NULL on failure. */
    int (*settings_init)(cmargin_settings *settings);
    int (*newton_new)(const cmargin_settings *settings, cmargin_newton **out);
    int (*newton_ask)(cmargin_newton *newton, cmargin_request *request);
    int (*newton_tell)(cmargin_newton *newton, const double *answer, ptrdiff_t size);
    /* at any time: what is known, and into w (p,), unless NULL, the best weights */
    int (*newton_result)(const cmargin_newton *newton, cmargin_result *result, double *w);
    /* ask no more, but for an evaluation where no look was told yet */
    int (*newton_stop)(cmargin_newton *newton);
    void (*newton_free)(cmargin_newton *newton);

    /* Minimum over 0 <= s <= s_max of a convex function plus sum weight_j |w_j + s d_j|; w, d, weight (n,) kept.
     * Tell slope and curvature of the smooth part at line_step, 0 to begin with, while 1 is returned; `hit`, unless
     * NULL: the component that vanishes at the answer, or -1. */
    int (*line_new)(ptrdiff_t n, const double *w, const double *d, const double *weight, double s_max, double tol,
                    int max_trials, cmargin_line **out);
    int (*line_tell)(cmargin_line *line, double slope, double curvature);
    double (*line_step)(const cmargin_line *line, ptrdiff_t *hit);
    void (*line_free)(cmargin_line *line);

    /* Catoni's location of q (n,), 1e-100 <= scale, |q| <= 1e100: in one call, or by sums (3) at search->at, which add up */
    int (*location)(ptrdiff_t n, const double *q, double median, double scale, double *at);
    int (*location_begin)(double median, double scale, cmargin_location *search);
    int (*location_sums)(ptrdiff_t n, const double *q, double at, double scale, double *sums);
    int (*location_tell)(cmargin_location *search, const double *sums, double scale);

    /* Psi_{s, gamma}(t), 0 <= t <= 1, and t with that value; NaN out of range. level, scale > 0 */
    double (*psi)(double t, double level, double scale);
    double (*psi_inverse)(double value, double level, double scale);
} cmargin_table;

#ifdef Py_PYTHON_H
static inline const cmargin_table *cmargin_import(void) {
    const cmargin_table *table = (const cmargin_table *) PyCapsule_Import("cmargin.api.C_API", 0);
    if (table != NULL && (table->version != CMARGIN_VERSION || table->size < sizeof(cmargin_table))) {
        PyErr_SetString(PyExc_ImportError, "the installed cmargin does not serve this cmargin.h; compile against its own");
        return NULL;
    }
    return table;
}
#endif

#endif
