/* Threads that share out the items of a piece of work, and sleep when there is none.
 *
 * OpenMP's threads wait for the next region, and for each other at the end of one, by spinning, for milliseconds. Where
 * somebody else wants the processors, the thread that spins has one, and the thread that it waits for has none. Threads
 * of a team spin for a moment, and then sleep; and nobody waits for a thread that has not begun on an item.
 *
 * Every thread that calls has a team of its own, made when it first shares out work and ended with the thread, so calls
 * from several threads do not wait for each other. Thread number t of n_threads begins with the items that are its own,
 * from n t / n_threads on, which are those it had the time before, in its caches; then it takes what is left of the
 * others'. Who does an item must make no difference.
 */
#ifndef CMARGIN_TEAM_H
#define CMARGIN_TEAM_H

#include <stddef.h>

#include "_fp_control.h"

typedef void (*team_work)(void *of, ptrdiff_t item, int thread);

/* All items one after the other, by the thread that calls. */
static inline void team_alone(team_work work, void *of, ptrdiff_t n) {
    ptrdiff_t item;
    for (item = 0; item < n; item++)
        work(of, item, 0);
}

#if defined(__GNUC__) && !defined(_WIN32)

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    TEAM_SPIN = 30000,               /* nanoseconds that a caller waits so: about what it takes to wake a thread */
    TEAM_LINGER = 1000000,           /* and a helper for the next round, as OpenMP's do for several times as long: a
                                        virtual processor that sleeps may be ten milliseconds away */
    TEAM_LINE = 64                   /* bytes of a cache line */
};

typedef struct {
    ptrdiff_t next, end;             /* items that a thread begins with */
    char apart[TEAM_LINE - 2 * sizeof(ptrdiff_t)];
} team_share;

typedef struct team team;

typedef struct {
    team *of;
    pthread_t thread;
    int number;                      /* the caller is number 0 */
} team_helper;

struct team {
    /* Written by the caller before it opens the gate, read by helpers behind it. */
    team_work work;
    void *of;
    int n_threads;
    team_share *shares;              /* (n_helpers + 1,) */
    /* Twice the number of helpers at work, and 1 while more may come. */
    int gate __attribute__((aligned(TEAM_LINE)));
    unsigned long round __attribute__((aligned(TEAM_LINE)));
    int ends;
    pthread_mutex_t lock __attribute__((aligned(TEAM_LINE)));
    pthread_cond_t asked, done;
    int n_asleep, caller_sleeps;     /* under the lock, but for who asks whether to wake anybody */
    team_helper **helpers;
    int n_helpers;
    pid_t process;                   /* where the helpers are; a fork has none */
};

static inline long long team_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void team_breathe(void) {
    int i;
    for (i = 0; i < 8; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ __volatile__("yield");
#endif
    }
}

static inline void team_items(team *t, int thread) {
    team_work work = t->work;
    void *of = t->of;
    int n_threads = t->n_threads, ahead;
    ptrdiff_t item;
    for (ahead = 0; ahead < n_threads; ahead++) {
        team_share *share = t->shares + (thread + ahead) % n_threads;
        while (__atomic_load_n(&share->next, __ATOMIC_RELAXED) < share->end
               && (item = __atomic_fetch_add(&share->next, 1, __ATOMIC_RELAXED)) < share->end)
            work(of, item, thread);
    }
}

/* Whether the caller's gate let this helper in; if so, the work cannot end without it. */
static inline int team_enters(team *t) {
    int gate = __atomic_load_n(&t->gate, __ATOMIC_RELAXED);
    while (gate & 1)
        if (__atomic_compare_exchange_n(&t->gate, &gate, gate + 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return 1;
    return 0;
}

static inline void team_leaves(team *t) {
    if (__atomic_sub_fetch(&t->gate, 2, __ATOMIC_SEQ_CST) == 0
            && __atomic_load_n(&t->caller_sleeps, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_signal(&t->done);
        pthread_mutex_unlock(&t->lock);
    }
}

/* Until there is another round than ``seen``, which is returned. */
static inline unsigned long team_next_round(team *t, unsigned long seen) {
    unsigned long round;
    long long until = team_clock() + TEAM_LINGER;
    do {
        if ((round = __atomic_load_n(&t->round, __ATOMIC_ACQUIRE)) != seen)
            return round;
        team_breathe();
    } while (team_clock() < until);
    pthread_mutex_lock(&t->lock);
    __atomic_add_fetch(&t->n_asleep, 1, __ATOMIC_SEQ_CST);
    while ((round = __atomic_load_n(&t->round, __ATOMIC_SEQ_CST)) == seen)
        pthread_cond_wait(&t->asked, &t->lock);
    __atomic_sub_fetch(&t->n_asleep, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&t->lock);
    return round;
}

static __thread int team_inside;     /* this thread is at work for a team: what it shares out, it does alone */

static inline void *team_helps(void *given) {
    team_helper *self = (team_helper *)given;
    team *t = self->of;
    unsigned long seen = 0;
    team_inside = 1;
    fp_standard();                   /* a new thread has the settings of the one that made it */
    for (;;) {
        seen = team_next_round(t, seen);
        if (__atomic_load_n(&t->ends, __ATOMIC_ACQUIRE))
            return NULL;
        if (team_enters(t)) {
            if (self->number < t->n_threads)
                team_items(t, self->number);
            team_leaves(t);
        }
    }
}

/* NULL: no memory. */
static inline team *team_new(void) {
    void *room;
    team *t;
    if (posix_memalign(&room, TEAM_LINE, sizeof(team)) != 0)
        return NULL;
    t = (team *)room;
    *t = (team){0};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->asked, NULL);
    pthread_cond_init(&t->done, NULL);
    t->process = getpid();
    return t;
}

/* As many helpers as are wanted, or as memory and the system allow. */
static inline void team_grow(team *t, int n_helpers) {
    sigset_t all, before;
    team_helper **helpers = (team_helper **)realloc(t->helpers, n_helpers * sizeof(team_helper *));
    void *room;
    if (helpers == NULL)
        return;
    t->helpers = helpers;
    if (posix_memalign(&room, TEAM_LINE, (n_helpers + 1) * sizeof(team_share)) != 0)
        return;
    free(t->shares);
    t->shares = (team_share *)room;
    sigfillset(&all);                /* signals are for the threads that Python knows */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (t->n_helpers < n_helpers) {
        team_helper *helper = (team_helper *)malloc(sizeof(team_helper));
        if (helper == NULL)
            break;
        helper->of = t, helper->number = t->n_helpers + 1;
        if (pthread_create(&helper->thread, NULL, team_helps, helper) != 0) {
            free(helper);
            break;
        }
        t->helpers[t->n_helpers++] = helper;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static inline void team_open_round(team *t) {
    __atomic_add_fetch(&t->round, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&t->n_asleep, __ATOMIC_SEQ_CST) > 0) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->asked);
        pthread_mutex_unlock(&t->lock);
    }
}

/* Called where the thread of the team ends: its helpers end with it. */
static void team_free(void *given) {
    team *t = (team *)given;
    int i;
    if (t == NULL || t->process != getpid())
        return;
    __atomic_store_n(&t->ends, 1, __ATOMIC_RELEASE);
    team_open_round(t);
    for (i = 0; i < t->n_helpers; i++) {
        pthread_join(t->helpers[i]->thread, NULL);
        free(t->helpers[i]);
    }
    pthread_cond_destroy(&t->asked);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    free(t->helpers);
    free(t->shares);
    free(t);
}

static inline void team_wait_for_helpers(team *t) {
    long long until;
    if (__atomic_sub_fetch(&t->gate, 1, __ATOMIC_SEQ_CST) == 0)
        return;
    until = team_clock() + TEAM_SPIN;
    do {
        if (__atomic_load_n(&t->gate, __ATOMIC_ACQUIRE) == 0)
            return;
        team_breathe();
    } while (team_clock() < until);
    pthread_mutex_lock(&t->lock);
    __atomic_store_n(&t->caller_sleeps, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&t->gate, __ATOMIC_SEQ_CST) != 0)
        pthread_cond_wait(&t->done, &t->lock);
    __atomic_store_n(&t->caller_sleeps, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&t->lock);
}

static pthread_key_t team_key;
static pthread_once_t team_key_made = PTHREAD_ONCE_INIT;
static void team_make_key(void) { pthread_key_create(&team_key, team_free); }

/* The calling thread's team with ``n_helpers``, or as many as there can be; NULL: none. */
static inline team *team_here(int n_helpers) {
    static __thread team *here;      /* what the key holds, without the call */
    if (here == NULL || here->process != getpid()) {
        pthread_once(&team_key_made, team_make_key);
        here = team_new();
        pthread_setspecific(team_key, here);
    }
    if (here != NULL && here->n_helpers < n_helpers)
        team_grow(here, n_helpers);
    return here != NULL && here->n_helpers > 0 && here->shares != NULL ? here : NULL;
}

/* work(of, item, thread) of item = 0 .. n - 1, thread = 0 .. n_threads - 1 at most, 0 being who calls. */
static inline void team_share_out(team_work work, void *of, ptrdiff_t n, int n_threads) {
    team *t;
    int thread;
    if (n_threads > n)
        n_threads = (int)n;
    t = n_threads > 1 && !team_inside ? team_here(n_threads - 1) : NULL;
    if (t == NULL) {
        team_alone(work, of, n);
        return;
    }
    if (n_threads > t->n_helpers + 1)
        n_threads = t->n_helpers + 1;
    t->work = work, t->of = of, t->n_threads = n_threads;
    for (thread = 0; thread < n_threads; thread++) {
        t->shares[thread].next = n * thread / n_threads;
        t->shares[thread].end = n * (thread + 1) / n_threads;
    }
    __atomic_store_n(&t->gate, 1, __ATOMIC_RELEASE);
    team_open_round(t);
    team_inside = 1;
    team_items(t, 0);
    team_inside = 0;
    team_wait_for_helpers(t);
}

#else                                /* without POSIX threads: OpenMP's where the build has them */

#ifdef _OPENMP
#include <omp.h>
#endif

static inline void team_share_out(team_work work, void *of, ptrdiff_t n, int n_threads) {
#ifdef _OPENMP
    long item;
    #pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads) if(n_threads > 1)
    for (item = 0; item < (long)n; item++)
        work(of, item, omp_get_thread_num());
#else
    (void)n_threads;
    team_alone(work, of, n);
#endif
}

#endif
#endif
