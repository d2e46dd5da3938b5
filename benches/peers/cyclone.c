/* Cyclone DDS as a peer of the benchmarks, in C.
 *
 *     cyclone pong SIZE WARM_UP COUNT DOMAIN    sends samples back
 *     cyclone ping SIZE WARM_UP COUNT DOMAIN    prints "p50 NANOSECONDS" and "p99 NANOSECONDS" of
 *                                               COUNT round trips, after WARM_UP that warm up
 *     cyclone sink SIZE WARM_UP COUNT DOMAIN    takes samples, prints "rate SAMPLES_A_SECOND" of
 *                                               COUNT samples, after WARM_UP that warm up
 *     cyclone source SIZE WARM_UP COUNT DOMAIN  writes them, with batching
 *
 * All end with stdin. Samples are taken and written by listeners, in the thread that receives, as in
 * the library's own example with -l. ping and sink add up the words of a sample's bytes. A sample
 * that is missing, comes twice or has other bytes than were sent ends the program. */

#include "cyclone.h"

static uint64_t warm_up, count;
static dds_entity_t reader;
/* The sum of the words of a payload. */
static uint64_t payload_sum;
/* ping */
static uint64_t number;
static dds_time_t sent_at, *round_trips;
/* sink */
static dds_time_t began;

/* Adds up the words of a payload. */
static uint64_t sum_of(const struct sample *sample) {
    size_t words = (size - NUMBER_SIZE) / sizeof(uint64_t);
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, sample->payload + i * sizeof word, sizeof word);
        sum += word;
    }
    return sum;
}

/* Reads a sample whole. */
static void check(const struct sample *sample) {
    if (sum_of(sample) == payload_sum)
        return;
    fprintf(stderr, "sample %" PRIu64 " has other bytes than were sent\n", sample->number);
    exit(1);
}

/* Fills the samples that are sent with bytes of many values. */
static void fill(void) {
    for (size_t at = NUMBER_SIZE; at < size; at++)
        outgoing.payload[at - NUMBER_SIZE] = (uint8_t)(at % 251);
    payload_sum = sum_of(&outgoing);
}

static void on_ping(const struct sample *sample, void *unused) {
    (void)unused;
    put(sample);
}

static void on_pong(const struct sample *sample, void *unused) {
    (void)unused;
    check(sample);
    dds_time_t came = dds_time();
    expect(sample->number, number);
    if (number >= warm_up)
        round_trips[number - warm_up] = came - sent_at;
    if (++number == warm_up + count) {
        report(round_trips, count);
        return;
    }
    outgoing.number = number;
    sent_at = dds_time();
    put(&outgoing);
}

static void on_flow(const struct sample *sample, void *unused) {
    (void)unused;
    check(sample);
    expect(sample->number, number);
    if (number++ == warm_up)
        began = dds_time();
    if (number != warm_up + count)
        return;
    double seconds = (double)(dds_time() - began) / 1e9;
    printf("rate %f\n", (double)(count - 1) / seconds);
    fflush(stdout);
}

static void on_data(dds_entity_t entity, void *each) {
    take_all(entity, (void (*)(const struct sample *, void *))each, NULL);
}

static void open_ends(dds_domainid_t domain, const char *written, const char *read,
                      void (*each)(const struct sample *, void *), bool batching) {
    dds_entity_t participant = made("participant", dds_create_participant(domain, NULL, NULL));
    dds_qos_t *qos = qos_with(batching);
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
    do {
        dds_sleepfor(DDS_MSECS(2));
    } while ((writer && !is_read(writer)) || (reader && !is_written(reader)));
    dds_sleepfor(DDS_MSECS(300));
}

int main(int argc, char **argv) {
    size_t given = argc == 6 ? strtoul(argv[2], NULL, 10) : 0;
    if (!is_size(given)) {
        fprintf(stderr, "cyclone pong|ping|sink|source SIZE WARM_UP COUNT DOMAIN\n");
        return 2;
    }
    set_size(given);
    fill();
    const char *role = argv[1];
    warm_up = strtoull(argv[3], NULL, 10);
    count = strtoull(argv[4], NULL, 10);
    dds_domainid_t domain = (dds_domainid_t)strtoul(argv[5], NULL, 10);
    if (strcmp(role, "pong") == 0) {
        open_ends(domain, "Pong", "Ping", on_ping, false);
        ready();
    } else if (strcmp(role, "ping") == 0) {
        round_trips = calloc(count, sizeof *round_trips);
        open_ends(domain, "Ping", "Pong", on_pong, false);
        wait_for_match();
        sent_at = dds_time();
        put(&outgoing);
    } else if (strcmp(role, "sink") == 0) {
        open_ends(domain, NULL, "Flow", on_flow, true);
        ready();
    } else {
        open_ends(domain, "Flow", NULL, NULL, true);
        wait_for_match();
        for (uint64_t i = 0; i < warm_up + count; i++) {
            outgoing.number = i;
            put(&outgoing);
        }
        (void)dds_write_flush(writer);
    }
    until_stdin_ends();
    return 0;
}
