/* Cyclone DDS as a peer of the benchmarks, in C.
 *
 *     cyclone pong SIZE COUNT DOMAIN    sends samples back
 *     cyclone ping SIZE COUNT DOMAIN    prints "p50 NANOSECONDS" and "p99 NANOSECONDS" of COUNT round
 *                                       trips, after a quarter as many that warm up
 *     cyclone sink SIZE COUNT DOMAIN    takes samples, prints "rate SAMPLES_A_SECOND", of all but the
 *                                       first tenth
 *     cyclone source SIZE COUNT DOMAIN  writes them, with batching
 *
 * All end with stdin. Samples are taken and written by listeners, in the thread that receives, as in
 * the library's own example with -l. A sample that is missing or comes twice ends the program. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"

#define LONGEST 8192
#define BATCH 64
#define NUMBER_SIZE sizeof(uint64_t)

struct sample {
    uint64_t number;
    uint8_t payload[LONGEST - NUMBER_SIZE];
};

/* The type as idlc describes it; the length of the payload is filled in. */
static uint32_t ops[] = {DDS_OP_ADR | DDS_OP_TYPE_8BY,
                         offsetof(struct sample, number),
                         DDS_OP_ADR | DDS_OP_TYPE_ARR | DDS_OP_SUBTYPE_1BY,
                         offsetof(struct sample, payload),
                         0,
                         DDS_OP_RTS};

static size_t size;

static uint64_t count, warm_up;
static dds_entity_t writer, reader;
static struct sample outgoing;
static void *places[BATCH];
static dds_sample_info_t infos[BATCH];
/* ping */
static uint64_t number;
static dds_time_t sent_at, *round_trips;
/* sink */
static dds_time_t began;

static void fail(const char *what, dds_return_t code) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(-code));
    exit(1);
}

static dds_entity_t made(const char *what, dds_entity_t entity) {
    if (entity < 0)
        fail(what, entity);
    return entity;
}

static void put(const struct sample *sample) {
    dds_return_t code = dds_write(writer, sample);
    if (code != DDS_RETCODE_OK)
        fail("dds_write", code);
}

static void expect(uint64_t came, uint64_t expected) {
    if (came == expected)
        return;
    fprintf(stderr, "sample %" PRIu64 " in place of %" PRIu64 "\n", came, expected);
    exit(1);
}

static int by_value(const void *a, const void *b) {
    dds_time_t x = *(const dds_time_t *)a, y = *(const dds_time_t *)b;
    return (x > y) - (x < y);
}

static void report(void) {
    qsort(round_trips, count, sizeof *round_trips, by_value);
    printf("p50 %" PRId64 "\np99 %" PRId64 "\n", round_trips[count / 2],
           round_trips[count * 99 / 100]);
    fflush(stdout);
}

static void on_ping(const struct sample *sample) { put(sample); }

static void on_pong(const struct sample *sample) {
    dds_time_t came = dds_time();
    expect(sample->number, number);
    if (number >= warm_up)
        round_trips[number - warm_up] = came - sent_at;
    if (++number == warm_up + count) {
        report();
        return;
    }
    outgoing.number = number;
    sent_at = dds_time();
    put(&outgoing);
}

static void on_flow(const struct sample *sample) {
    expect(sample->number, number);
    if (number++ == warm_up)
        began = dds_time();
    if (number != count)
        return;
    double seconds = (double)(dds_time() - began) / 1e9;
    printf("rate %f\n", (double)(count - warm_up - 1) / seconds);
    fflush(stdout);
}

static void on_data(dds_entity_t entity, void *each) {
    dds_return_t n;
    do {
        n = dds_take(entity, places, infos, BATCH, BATCH);
        if (n < 0)
            fail("dds_take", n);
        for (dds_return_t i = 0; i < n; i++)
            if (infos[i].valid_data)
                ((void (*)(const struct sample *))each)(places[i]);
    } while (n == BATCH);
}

static dds_entity_t topic_of(dds_entity_t participant, const char *name) {
    const dds_topic_descriptor_t type = {
        .m_size = (uint32_t)size,
        .m_align = _Alignof(struct sample),
        .m_flagset = DDS_TOPIC_FIXED_SIZE,
        .m_typename = "Bench::Sample",
        .m_nops = 3,
        .m_ops = ops,
    };
    return made("topic", dds_create_topic(participant, &type, name, NULL, NULL));
}

static void open_ends(dds_domainid_t domain, const char *written, const char *read,
                      void (*each)(const struct sample *), bool batching) {
    dds_entity_t participant = made("participant", dds_create_participant(domain, NULL, NULL));
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, DDS_LENGTH_UNLIMITED);
    dds_qset_resource_limits(qos, 8192, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
    dds_qset_writer_batching(qos, batching);
    if (written) {
        dds_entity_t topic = topic_of(participant, written);
        writer = made("writer", dds_create_writer(participant, topic, qos, NULL));
    }
    if (read) {
        dds_listener_t *listener = dds_create_listener((void *)each);
        dds_lset_data_available(listener, on_data);
        dds_entity_t topic = topic_of(participant, read);
        reader = made("reader", dds_create_reader(participant, topic, qos, listener));
        dds_delete_listener(listener);
    }
    dds_delete_qos(qos);
}

/* Waits until both ends have met the other side, and it has met them. */
static void wait_for_match(void) {
    dds_publication_matched_status_t out = {.current_count = 1};
    dds_subscription_matched_status_t in = {.current_count = 1};
    do {
        dds_sleepfor(DDS_MSECS(2));
        if (writer)
            (void)dds_get_publication_matched_status(writer, &out);
        if (reader)
            (void)dds_get_subscription_matched_status(reader, &in);
    } while (out.current_count == 0 || in.current_count == 0);
    dds_sleepfor(DDS_MSECS(300));
}

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

int main(int argc, char **argv) {
    size = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
    if (size <= NUMBER_SIZE || size > LONGEST || size % NUMBER_SIZE != 0) {
        fprintf(stderr, "cyclone pong|ping|sink|source SIZE COUNT DOMAIN\n");
        return 2;
    }
    const char *role = argv[1];
    count = strtoull(argv[3], NULL, 10);
    dds_domainid_t domain = (dds_domainid_t)strtoul(argv[4], NULL, 10);
    ops[4] = (uint32_t)(size - NUMBER_SIZE);
    char *taken = calloc(BATCH, size);
    for (size_t i = 0; i < BATCH; i++)
        places[i] = taken + i * size;
    if (strcmp(role, "pong") == 0) {
        open_ends(domain, "Pong", "Ping", on_ping, false);
        ready();
    } else if (strcmp(role, "ping") == 0) {
        warm_up = count / 4;
        round_trips = calloc(count, sizeof *round_trips);
        open_ends(domain, "Ping", "Pong", on_pong, false);
        wait_for_match();
        sent_at = dds_time();
        put(&outgoing);
    } else if (strcmp(role, "sink") == 0) {
        warm_up = count / 10;
        open_ends(domain, NULL, "Flow", on_flow, true);
        ready();
    } else {
        open_ends(domain, "Flow", NULL, NULL, true);
        wait_for_match();
        for (uint64_t i = 0; i < count; i++) {
            outgoing.number = i;
            put(&outgoing);
        }
        (void)dds_write_flush(writer);
    }
    while (getchar() != EOF)
        ;
    return 0;
}
