/* Threads that sleep while there is nothing to do, and that nobody waits for unless they have begun on something.
 *
 * OpenMP's wait for the next region, and for each other at the end of one, by spinning, for milliseconds. Where regions
 * are short and many, as those of a read in chunks, and somebody else wants the processors, a thread that spins has them
 * and one that others wait for has not. A team has one caller at a time, as the rows that it works on have.
 */
#ifndef CMARGIN_TEAM_H
#define CMARGIN_TEAM_H

#include <stddef.h>

typedef void (*team_work)(void *of, ptrdiff_t item, int thread);

#if defined(_OPENMP) && defined(__GNUC__) && !defined(_WIN32)

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    pthread_mutex_t lock;            /* of all below but `next` */
    pthread_cond_t asked, done;
    pthread_t *helpers;
    int n_helpers;
    pid_t process;                   /* where they are; a fork has none */
    int ends;
    unsigned long round;
    team_work work;                  /* NULL: there is none */
    void *of;
    ptrdiff_t next, n;               /* items */
    int most, joined, busy;          /* helpers that may join this round, that have, and that have not left it */
} team;

static inline void team_items(team *t, int thread) {
    ptrdiff_t item;
    while ((item = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->n)
        t->work(t->of, item, thread);
}

static inline void *team_helper(void *given) {
    team *t = (team *)given;
    unsigned long seen = 0;
    int thread;
    pthread_mutex_lock(&t->lock);
    while (!t->ends) {
        if (t->work == NULL || t->round == seen) {
            pthread_cond_wait(&t->asked, &t->lock);
            continue;
        }
        seen = t->round;
        if (t->joined == t->most)
            continue;
        thread = ++t->joined;
        t->busy++;
        pthread_mutex_unlock(&t->lock);
        team_items(t, thread);
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0)
            pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* NULL: no memory. Threads that the system refuses are not there. */
static inline team *team_new(int n_helpers) {
    sigset_t all, before;
    team *t = (team *)calloc(1, sizeof(team));
    if (t == NULL || (t->helpers = (pthread_t *)calloc(n_helpers + 1, sizeof(pthread_t))) == NULL) {
        free(t);
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->asked, NULL);
    pthread_cond_init(&t->done, NULL);
    t->process = getpid();
    sigfillset(&all);                /* signals are for the threads that Python knows */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (t->n_helpers < n_helpers && pthread_create(t->helpers + t->n_helpers, NULL, team_helper, t) == 0)
        t->n_helpers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t;
}

static inline void team_free(team *t) {
    int i;
    if (t == NULL || t->process != getpid())
        return;
    pthread_mutex_lock(&t->lock);
    t->ends = 1;
    pthread_cond_broadcast(&t->asked);
    pthread_mutex_unlock(&t->lock);
    for (i = 0; i < t->n_helpers; i++)
        pthread_join(t->helpers[i], NULL);
    pthread_cond_destroy(&t->asked);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t->helpers);
    free(t);
}

/* work(of, item, thread) of item = 0 .. n - 1 by thread = 0 .. n_threads - 1 at most, 0 being who calls. */
static inline void team_run(team *t, team_work work, void *of, ptrdiff_t n, int n_threads) {
    ptrdiff_t item;
    if (t->process != getpid()) {
        for (item = 0; item < n; item++)
            work(of, item, 0);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->work = work, t->of = of, t->next = 0, t->n = n;
    t->most = n_threads - 1, t->joined = 0;
    t->round++;
    pthread_cond_broadcast(&t->asked);
    pthread_mutex_unlock(&t->lock);
    team_items(t, 0);
    pthread_mutex_lock(&t->lock);
    while (t->busy > 0)
        pthread_cond_wait(&t->done, &t->lock);
    t->work = NULL;                  /* who wakes now has come too late */
    pthread_mutex_unlock(&t->lock);
}

#else                                /* there is none: callers do without */

typedef struct { int nothing; } team;
static inline team *team_new(int n_helpers) { (void)n_helpers; return NULL; }
static inline void team_free(team *t) { (void)t; }
static inline void team_run(team *t, team_work work, void *of, ptrdiff_t n, int n_threads) {
    ptrdiff_t item;
    (void)t, (void)n_threads;
    for (item = 0; item < n; item++)
        work(of, item, 0);
}

#endif
#endif
