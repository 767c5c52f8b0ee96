/* pq.h -- libpq, loaded when the first store on a server is opened.
 *
 * A program that keeps its stores in files does not need the library, so heddle is not linked with it: dlopen
 * loads it, and dlsym finds the functions. Every connection has the functions in a structure of its own, so
 * that there is no global state; the system counts how often the library is open. */
#ifndef STORE_POSTGRES_PQ_H
#define STORE_POSTGRES_PQ_H

#include <heddle/base.h>

#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#elif __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#else
#error "libpq-fe.h is missing: install libpq-dev"
#endif

/* Each member is the function of the library that has its name. */
#define PQ_FUNCTIONS(X)                                                                            \
    X(PGconn *, PQconnectStartParams, (const char *const *, const char *const *, int))             \
    X(PQconninfoOption *, PQconninfoParse, (const char *, char **))                                \
    X(void, PQconninfoFree, (PQconninfoOption *))                                                  \
    X(PostgresPollingStatusType, PQconnectPoll, (PGconn *))                                        \
    X(ConnStatusType, PQstatus, (const PGconn *))                                                  \
    X(void, PQfinish, (PGconn *))                                                                  \
    X(char *, PQerrorMessage, (const PGconn *))                                                    \
    X(int, PQsocket, (const PGconn *))                                                             \
    X(char *, PQuser, (const PGconn *))                                                            \
    X(PGVerbosity, PQsetErrorVerbosity, (PGconn *, PGVerbosity))                                   \
    X(PQnoticeProcessor, PQsetNoticeProcessor, (PGconn *, PQnoticeProcessor, void *))              \
    X(char *, PQescapeIdentifier, (PGconn *, const char *, size_t))                                \
    X(void, PQfreemem, (void *))                                                                   \
    X(int, PQsendQuery, (PGconn *, const char *))                                                  \
    X(int, PQsetnonblocking, (PGconn *, int))                                                      \
    X(int, PQflush, (PGconn *))                                                                    \
    X(int, PQenterPipelineMode, (PGconn *))                                                        \
    X(int, PQexitPipelineMode, (PGconn *))                                                         \
    X(int, PQpipelineSync, (PGconn *))                                                             \
    X(int, PQsendPrepare, (PGconn *, const char *, const char *, int, const Oid *))                \
    X(int, PQsendQueryPrepared,                                                                    \
      (PGconn *, const char *, int, const char *const *, const int *, const int *, int))           \
    X(PGresult *, PQgetResult, (PGconn *))                                                         \
    X(int, PQconsumeInput, (PGconn *))                                                             \
    X(int, PQisBusy, (PGconn *))                                                                   \
    X(PGnotify *, PQnotifies, (PGconn *))                                                          \
    X(ExecStatusType, PQresultStatus, (const PGresult *))                                          \
    X(char *, PQresultErrorField, (const PGresult *, int))                                         \
    X(void, PQclear, (PGresult *))                                                                 \
    X(int, PQntuples, (const PGresult *))                                                          \
    X(int, PQgetlength, (const PGresult *, int, int))                                              \
    X(char *, PQgetvalue, (const PGresult *, int, int))                                            \
    X(char *, PQcmdTuples, (PGresult *))

#define PQ_MEMBER(result, name, arguments) result(*name) arguments;
typedef struct pq {
    void *library;
    PQ_FUNCTIONS(PQ_MEMBER)
} pq;
#undef PQ_MEMBER

/* HD_FAILED: the library is not installed, or too old; the error says so. Once it is loaded it stays, since it
 * keeps data of its own. */
hd_status pq_load(pq *out, hd_error *error);

#endif
