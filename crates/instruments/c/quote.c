/* The plain C program that `fanfare bench dds` measures against: typed dds_write, dds_take into
   one preallocated sample, listeners in the receive thread. It links the same Cyclone DDS as the
   rest. cyclors does not export the path of its headers, so their used parts are declared here. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int32_t dds_entity_t;
typedef int32_t dds_return_t;
typedef struct dds_qos dds_qos_t;
typedef struct dds_listener dds_listener_t;

struct type_meta {
  const unsigned char *data;
  uint32_t sz;
};

typedef struct {
  uint32_t m_size, m_align, m_flagset, m_nkeys;
  const char *m_typename;
  const void *m_keys;
  uint32_t m_nops;
  const uint32_t *m_ops;
  const char *m_meta;
  struct type_meta type_information, type_mapping;
  uint32_t restrict_data_representation;
} descriptor_t;

typedef struct {
  int sample_state, view_state, instance_state;
  bool valid_data;
  int64_t source_timestamp;
  uint64_t instance_handle, publication_handle;
  uint32_t disposed_generation_count, no_writers_generation_count;
  uint32_t sample_rank, generation_rank, absolute_generation_rank;
} sample_info_t;

typedef struct {
  uint32_t total_count;
  int32_t total_count_change;
  uint32_t current_count;
  int32_t current_count_change;
  uint64_t last_handle;
} matched_t;

extern dds_entity_t dds_create_domain(uint32_t, const char *);
extern dds_entity_t dds_create_participant(uint32_t, const dds_qos_t *, const dds_listener_t *);
extern dds_entity_t dds_create_topic(dds_entity_t, const descriptor_t *, const char *,
                                     const dds_qos_t *, const dds_listener_t *);
extern dds_entity_t dds_create_writer(dds_entity_t, dds_entity_t, const dds_qos_t *,
                                      const dds_listener_t *);
extern dds_entity_t dds_create_reader(dds_entity_t, dds_entity_t, const dds_qos_t *,
                                      const dds_listener_t *);
extern dds_return_t dds_delete(dds_entity_t);
extern dds_return_t dds_write(dds_entity_t, const void *);
extern dds_return_t dds_write_flush(dds_entity_t);
extern dds_return_t dds_take(dds_entity_t, void **, sample_info_t *, size_t, uint32_t);
extern dds_return_t dds_get_publication_matched_status(dds_entity_t, matched_t *);
extern dds_return_t dds_get_subscription_matched_status(dds_entity_t, matched_t *);
extern dds_qos_t *dds_create_qos(void);
extern void dds_delete_qos(dds_qos_t *);
extern void dds_qset_reliability(dds_qos_t *, int, int64_t);
extern void dds_qset_history(dds_qos_t *, int, int32_t);
extern void dds_qset_resource_limits(dds_qos_t *, int32_t, int32_t, int32_t);
extern void dds_qset_writer_batching(dds_qos_t *, bool);
extern dds_listener_t *dds_create_listener(void *);
extern void dds_delete_listener(dds_listener_t *);
extern void dds_lset_data_available(dds_listener_t *, void (*)(dds_entity_t, void *));

/* The Quote message, laid out as idlc does. */
struct quote {
  uint16_t message_type;
  uint32_t sequence_number, timestamp, order_id, volume, price;
  uint8_t exchange_id;
  uint16_t security_id;
  uint8_t security_type, session_id;
};

#define ADR(size, member) (0x01u << 24 | (size) << 16), (uint32_t)offsetof(struct quote, member)
static const uint32_t quote_ops[] = {
    ADR(2u, message_type), ADR(3u, sequence_number), ADR(3u, timestamp),    ADR(3u, order_id),
    ADR(3u, volume),       ADR(3u, price),           ADR(1u, exchange_id),  ADR(2u, security_id),
    ADR(1u, security_type), ADR(1u, session_id),     0};
static const descriptor_t quote_type = {
    .m_size = sizeof(struct quote),
    .m_align = 4,
    .m_flagset = 1u << 4 /* fixed size */,
    .m_typename = "Baseline::Quote",
    .m_nops = 11,
    .m_ops = quote_ops,
};

#define BATCH 64

static const struct quote first_quote = {11, 1, 2, 3, 4, 5, 6, 7, 8, 9};

struct fanfare_raw {
  dds_entity_t domain, participant, writer, reader;
  /* of the listener */
  struct quote taken[BATCH];
  void *places[BATCH];
  sample_info_t infos[BATCH];
  /* ping: of fanfare_raw_ping until it writes, then of the listener until `done` is `wanted` */
  struct quote sample;
  uint64_t *round_trips;
  uint32_t wanted;
  uint64_t sent_at;
  atomic_uint done;
  /* sink: the times are stored before the count, and loaded after it */
  atomic_ulong count, first, last;
};

enum role { PING, PONG, SOURCE, SINK };

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static dds_return_t take(struct fanfare_raw *r, dds_entity_t reader) {
  return dds_take(reader, r->places, r->infos, BATCH, BATCH);
}

static void on_ping(dds_entity_t reader, void *arg) {
  struct fanfare_raw *r = arg;
  dds_return_t n;
  do {
    n = take(r, reader);
    for (dds_return_t i = 0; i < n; i++)
      if (r->infos[i].valid_data) (void)dds_write(r->writer, &r->taken[i]);
  } while (n == BATCH);
}

static void on_pong(dds_entity_t reader, void *arg) {
  struct fanfare_raw *r = arg;
  unsigned done = atomic_load(&r->done);
  if (take(r, reader) <= 0 || !r->infos[0].valid_data || done >= r->wanted) return;
  /* A round trip ends once the sample is read. */
  uint64_t came = now();
  r->round_trips[done] = came - r->sent_at;
  if (done + 1 < r->wanted) {
    r->sample.sequence_number++;
    r->sent_at = now();
    (void)dds_write(r->writer, &r->sample);
  }
  atomic_store(&r->done, done + 1);
}

static void on_flow(dds_entity_t reader, void *arg) {
  struct fanfare_raw *r = arg;
  dds_return_t n;
  do {
    n = take(r, reader);
    unsigned long valid = 0, before = atomic_load_explicit(&r->count, memory_order_relaxed);
    for (dds_return_t i = 0; i < n; i++) valid += r->infos[i].valid_data;
    /* The clock is read once for many samples. */
    if (before == 0 || before / 64 != (before + valid) / 64) {
      unsigned long last = now();
      if (before == 0) atomic_store_explicit(&r->first, last, memory_order_relaxed);
      atomic_store_explicit(&r->last, last, memory_order_relaxed);
    }
    atomic_store_explicit(&r->count, before + valid, memory_order_release);
  } while (n == BATCH);
}

void fanfare_raw_close(struct fanfare_raw *r) {
  if (r->domain > 0) (void)dds_delete(r->domain);
  free(r);
}

struct fanfare_raw *fanfare_raw_open(uint32_t local_domain, const char *xml, int role,
                                     bool batching) {
  static void (*const listeners[])(dds_entity_t, void *) = {on_pong, on_ping, NULL, on_flow};
  static const char *const written[] = {"RawPing", "RawPong", "RawFlow", NULL};
  static const char *const read[] = {"RawPong", "RawPing", NULL, "RawFlow"};
  struct fanfare_raw *r = calloc(1, sizeof *r);
  if (r == NULL) return NULL;
  for (int i = 0; i < BATCH; i++) r->places[i] = &r->taken[i];
  r->sample = first_quote;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, 1, 1000000000);
  dds_qset_history(qos, 1, -1);
  dds_qset_resource_limits(qos, 8192, -1, -1);
  dds_qset_writer_batching(qos, batching);
  r->domain = dds_create_domain(local_domain, xml);
  r->participant = dds_create_participant(local_domain, NULL, NULL);
  bool ok = r->domain > 0 && r->participant > 0;
  if (ok && written[role]) {
    dds_entity_t topic = dds_create_topic(r->participant, &quote_type, written[role], NULL, NULL);
    r->writer = dds_create_writer(r->participant, topic, qos, NULL);
    ok = r->writer > 0;
  }
  if (ok && read[role]) {
    dds_listener_t *listener = dds_create_listener(r);
    dds_lset_data_available(listener, listeners[role]);
    dds_entity_t topic = dds_create_topic(r->participant, &quote_type, read[role], NULL, NULL);
    r->reader = dds_create_reader(r->participant, topic, qos, listener);
    dds_delete_listener(listener);
    ok = r->reader > 0;
  }
  dds_delete_qos(qos);
  if (ok) return r;
  fanfare_raw_close(r);
  return NULL;
}

bool fanfare_raw_matched(const struct fanfare_raw *r) {
  matched_t w = {0}, d = {0};
  if (r->writer > 0) (void)dds_get_publication_matched_status(r->writer, &w);
  if (r->reader > 0) (void)dds_get_subscription_matched_status(r->reader, &d);
  return (r->writer <= 0 || w.current_count > 0) && (r->reader <= 0 || d.current_count > 0);
}

/* Starts `n` round trips, unless others are under way; each is stored at its end. */
void fanfare_raw_ping(struct fanfare_raw *r, uint64_t *round_trips, uint32_t n) {
  if (n == 0 || atomic_load(&r->done) < r->wanted) return;
  r->round_trips = round_trips;
  r->wanted = n;
  atomic_store(&r->done, 0);
  r->sent_at = now();
  (void)dds_write(r->writer, &r->sample);
}

uint32_t fanfare_raw_done(struct fanfare_raw *r) { return atomic_load(&r->done); }

/* Writes samples for this many nanoseconds. Returns their number, 0 if a write fails. */
uint64_t fanfare_raw_flow(struct fanfare_raw *r, uint64_t nanos) {
  uint64_t end = now() + nanos, n = 0;
  struct quote sample = first_quote;
  do {
    for (int i = 0; i < 64; i++, n++) {
      sample.sequence_number++;
      if (dds_write(r->writer, &sample) != 0) return 0;
    }
  } while (now() < end);
  return dds_write_flush(r->writer) >= 0 ? n : 0;
}

/* Writes `n` samples. Returns the nanoseconds taken, 0 if a write fails. */
uint64_t fanfare_raw_burst(struct fanfare_raw *r, uint32_t n) {
  uint64_t begin = now();
  struct quote sample = first_quote;
  for (uint32_t i = 0; i < n; i++) {
    sample.sequence_number++;
    if (dds_write(r->writer, &sample) != 0) return 0;
  }
  return now() - begin;
}

/* Returns the samples taken, and stores the nanoseconds from the first to the last of them, or to a
   later one. */
uint64_t fanfare_raw_count(const struct fanfare_raw *r, uint64_t *nanos) {
  uint64_t count = atomic_load_explicit(&r->count, memory_order_acquire);
  uint64_t first = atomic_load_explicit(&r->first, memory_order_relaxed);
  *nanos = atomic_load_explicit(&r->last, memory_order_relaxed) - first;
  return count;
}
