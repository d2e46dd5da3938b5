/* What the programs on Cyclone DDS share: the sample, its type, the QoS, and errors. */

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

static dds_entity_t writer;
static struct sample outgoing;
static void *places[BATCH];
static dds_sample_info_t infos[BATCH];

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

/* Prints percentiles of nanoseconds. */
static void report(dds_time_t *times, uint64_t count) {
    qsort(times, count, sizeof *times, by_value);
    printf("p50 %" PRId64 "\np99 %" PRId64 "\n", times[count / 2], times[count * 99 / 100]);
    fflush(stdout);
}

static bool is_size(size_t given) {
    return given > NUMBER_SIZE && given <= LONGEST && given % NUMBER_SIZE == 0;
}

/* Takes the size of a sample, and makes room for samples. */
static void set_size(size_t given) {
    size = given;
    ops[4] = (uint32_t)(size - NUMBER_SIZE);
    char *taken = calloc(BATCH, size);
    for (size_t i = 0; i < BATCH; i++)
        places[i] = taken + i * size;
}

/* Takes what a reader has. */
static void take_all(dds_entity_t reader, void (*each)(const struct sample *, void *), void *of) {
    dds_return_t n;
    do {
        n = dds_take(reader, places, infos, BATCH, BATCH);
        if (n < 0)
            fail("dds_take", n);
        for (dds_return_t i = 0; i < n; i++)
            if (infos[i].valid_data)
                each(places[i], of);
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

static dds_qos_t *qos_with(bool batching) {
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, DDS_LENGTH_UNLIMITED);
    dds_qset_resource_limits(qos, 8192, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
    dds_qset_writer_batching(qos, batching);
    return qos;
}

static bool is_read(dds_entity_t entity) {
    dds_publication_matched_status_t status = {0};
    (void)dds_get_publication_matched_status(entity, &status);
    return status.current_count > 0;
}

static bool is_written(dds_entity_t entity) {
    dds_subscription_matched_status_t status = {0};
    (void)dds_get_subscription_matched_status(entity, &status);
    return status.current_count > 0;
}

static void ready(void) {
    puts("ready");
    fflush(stdout);
}

static void until_stdin_ends(void) {
    while (getchar() != EOF)
        ;
}
