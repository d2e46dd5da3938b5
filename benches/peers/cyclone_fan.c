/* Fan-out by Cyclone DDS, in C.
 *
 *     cyclone_fan relay SIZE                      writes what it reads to all readers
 *     cyclone_fan fan SIZE NETWORKS READERS ROUNDS WINDOW SECONDS
 *
 * fan writes samples for the relay and has READERS readers of what comes back, on NETWORKS instances
 * of the domain, each with sockets of its own, so that the relay's writer sends by multicast. It
 * prints "p50 NANOSECONDS" and "p99 NANOSECONDS" from before a write until the last reader has the
 * sample, of ROUNDS after a fifth as many that warm up; then "rate DELIVERIES_A_SECOND" with WINDOW
 * samples in flight for SECONDS.
 *
 * Both end with stdin. Samples are taken and written by listeners. Samples are written into a batch,
 * which is sent when all that came is taken. A sample that is missing or comes twice ends the
 * program. The domain is that of CYCLONEDDS_URI. */

#include <pthread.h>

#include "cyclone.h"

#define RING 1024

/* A reader, and the number of its next sample. */
struct end {
    dds_entity_t reader;
    uint64_t next;
};

/* Listeners are called by the threads of all networks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct end *ends;
static uint64_t end_count, rounds, warm_up, window;
static double seconds;

static uint64_t written, delivered;
/* The readers that have each sample under way. */
static uint64_t arrived[RING];
static dds_time_t sent_at, began, *times;
static bool is_dirty;

static void flush(void) {
    if (is_dirty)
        (void)dds_write_flush(writer);
    is_dirty = false;
}

static void forward(const struct sample *sample, void *unused) {
    (void)unused;
    put(sample);
    is_dirty = true;
}

static void on_relayed(dds_entity_t entity, void *unused) {
    take_all(entity, forward, unused);
    flush();
}

static void send_next(void) {
    outgoing.number = written++;
    sent_at = dds_time();
    put(&outgoing);
    is_dirty = true;
}

/* The last reader has a sample. */
static void complete(uint64_t number) {
    dds_time_t now = dds_time();
    delivered = number + 1;
    if (number >= warm_up && number < warm_up + rounds)
        times[number - warm_up] = now - sent_at;
    if (delivered < warm_up + rounds) {
        send_next();
    } else if (delivered == warm_up + rounds) {
        report(times, rounds);
        began = dds_time();
        for (uint64_t i = 0; i < window; i++)
            send_next();
    } else if ((double)(now - began) < seconds * 1e9) {
        send_next();
    } else if (delivered == written) {
        double deliveries = (double)(delivered - warm_up - rounds) * (double)end_count;
        printf("rate %f\n", deliveries * 1e9 / (double)(now - began));
        fflush(stdout);
    }
}

static void on_sample(const struct sample *sample, void *of) {
    struct end *end = of;
    expect(sample->number, end->next++);
    uint64_t *count = &arrived[sample->number % RING];
    if (++*count == end_count) {
        *count = 0;
        complete(sample->number);
    }
}

static void on_delivered(dds_entity_t entity, void *end) {
    pthread_mutex_lock(&lock);
    take_all(entity, on_sample, end);
    flush();
    pthread_mutex_unlock(&lock);
}

static dds_entity_t read_by(dds_entity_t participant, const char *name,
                            dds_on_data_available_fn on_data, void *of) {
    dds_qos_t *qos = qos_with(true);
    dds_listener_t *listener = dds_create_listener(of);
    dds_lset_data_available(listener, on_data);
    dds_entity_t topic = topic_of(participant, name);
    dds_entity_t reader = made("reader", dds_create_reader(participant, topic, qos, listener));
    dds_delete_listener(listener);
    dds_delete_qos(qos);
    return reader;
}

static void write_to(dds_entity_t participant, const char *name) {
    dds_qos_t *qos = qos_with(true);
    dds_entity_t topic = topic_of(participant, name);
    writer = made("writer", dds_create_writer(participant, topic, qos, NULL));
    dds_delete_qos(qos);
}

static void relay(void) {
    dds_entity_t participant = made("participant", dds_create_participant(0, NULL, NULL));
    write_to(participant, "Out");
    (void)read_by(participant, "In", on_relayed, NULL);
    ready();
}

/* Creates an instance of the domain, with sockets of its own, and the participant on it. */
static dds_entity_t network(dds_domainid_t id) {
    made("domain", dds_create_domain(id, getenv("CYCLONEDDS_URI")));
    return made("participant", dds_create_participant(id, NULL, NULL));
}

static void fan(uint64_t networks) {
    times = calloc(rounds, sizeof *times);
    ends = calloc(end_count, sizeof *ends);
    for (uint64_t i = 0; i < networks; i++) {
        dds_entity_t participant = network((dds_domainid_t)(i + 1));
        if (i == 0)
            write_to(participant, "In");
        for (uint64_t at = i; at < end_count; at += networks)
            ends[at].reader = read_by(participant, "Out", on_delivered, &ends[at]);
    }
    while (!is_read(writer))
        dds_sleepfor(DDS_MSECS(2));
    for (uint64_t i = 0; i < end_count; i++)
        while (!is_written(ends[i].reader))
            dds_sleepfor(DDS_MSECS(2));
    /* The relay meets them too. */
    dds_sleepfor(DDS_MSECS(1000));
    pthread_mutex_lock(&lock);
    send_next();
    flush();
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    size_t given = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    bool is_relay = argc == 3 && strcmp(argv[1], "relay") == 0;
    bool is_fan = argc == 8 && strcmp(argv[1], "fan") == 0;
    if (!is_size(given) || !(is_relay || is_fan)) {
        fprintf(stderr, "cyclone_fan relay SIZE\n"
                        "cyclone_fan fan SIZE NETWORKS READERS ROUNDS WINDOW SECONDS\n");
        return 2;
    }
    set_size(given);
    if (is_relay) {
        relay();
    } else {
        end_count = strtoull(argv[4], NULL, 10);
        rounds = strtoull(argv[5], NULL, 10);
        window = strtoull(argv[6], NULL, 10);
        seconds = strtod(argv[7], NULL);
        warm_up = rounds / 5;
        fan(strtoull(argv[3], NULL, 10));
    }
    until_stdin_ends();
    return 0;
}
