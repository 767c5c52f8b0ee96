/* sim_service.h -- a log service that several simulated machines share.
 *
 * A backend (store/log/backend.h) whose rows are in the memory of the test. It behaves as a database
 * server does: a transaction works on a state of its own, append finds out whether another writer was
 * faster, and a commit may succeed although its client is never told. Everything happens in one thread; what
 * goes wrong is drawn from the service's random numbers.
 *
 * A *machine* is a number. Its connections are the runtime that was opened under its name. */
#ifndef LAB_SIM_SERVICE_H
#define LAB_SIM_SERVICE_H

#include <heddle/lab.h>

typedef struct sim_service sim_service;

enum { SIM_MACHINES = 8 };
/* Of what sim_service_sabotage is told: bits of LOG_LEAVE_OUT_*; and so much further up those of SABOTAGE_*. */
enum { SIM_OF_LOG = 0xFFFF, SIM_OF_RUNTIME = 16 };

/* How a machine reaches the service. */
typedef enum sim_line {
    SIM_UP,   /* the machine reaches the service */
    SIM_CUT,  /* everything it asks fails */
    SIM_DEAD, /* the same, for good: its process has ended */
} sim_line;

/* One in so many; 0: never. */
typedef struct sim_faults {
    uint32_t refused;  /* transactions that do not begin */
    uint32_t aborted;  /* commits that fail, and are not stored */
    uint32_t lost_ack; /* commits that are stored, and seem to fail */
    uint32_t unread;   /* reads that fail */
    uint32_t raced;    /* appends before which another machine writes */
} sim_faults;

sim_service *sim_service_open(uint64_t seed);
void sim_service_close(sim_service *s);

/* Opens a runtime of the machine. `env` is the machine's own. */
hd_status sim_service_runtime(sim_service *s, uint32_t machine, const hd_env *env, hd_runtime **out,
                              hd_error *error);

void sim_service_set_faults(sim_service *s, sim_faults faults);
void sim_service_set_line(sim_service *s, uint32_t machine, sim_line line);
/* Runtimes that are opened from now on wait for a service that is away, as on PostgreSQL: log_store.patient. */
void sim_service_be_patient(sim_service *s);
/* The machine's next row is stored, but the machine is not told: its line is cut at that moment. Until set_faults. */
void sim_service_silence(sim_service *s, uint32_t machine);
/* Bits of LOG_LEAVE_OUT_* (base/sabotage.h), for runtimes that are opened from now on. */
void sim_service_sabotage(sim_service *s, unsigned what);
/* Called where another machine may write before this one's append; it may pump any other machine. */
void sim_service_on_race(sim_service *s, void (*fn)(uint32_t machine, void *ctx), void *ctx);

/* The clock of the service, by which sessions are present. It stands still otherwise. */
void sim_service_advance_ms(sim_service *s, uint64_t ms);

/* The last row of the log, how often an append has lost a race, and a number made of every row so far. */
uint64_t sim_service_rows(const sim_service *s);
uint64_t sim_service_races(const sim_service *s);
uint64_t sim_service_digest(const sim_service *s);

#endif
