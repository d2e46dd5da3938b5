/* The other side of the interoperation test in C: compiled against Debian's Cyclone DDS with what
 * idlc generates from our IDL. Takes each sample into the generated structures, prints it member
 * by member as JSON and writes it back from the structure on the topic with _back behind its name.
 * It says when it has met the other side, if it expects samples of it.
 *
 * peer TOPICS SAMPLES RELIABLE: names with commas between; how many samples to expect; 0 for
 * best-effort writers, 1 for reliable ones. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dds/dds.h"
#include "types.h"

#define BATCH 64
#define KINDS 6
/* Milliseconds, and more on a busy machine. */
#define ROUNDS 60000

static const char *before = "";

static void uint_member(const char *name, uint64_t value) {
    printf("%s\"%s\": %" PRIu64, before, name, value);
    before = ", ";
}

static void int_member(const char *name, int64_t value) {
    printf("%s\"%s\": %" PRId64, before, name, value);
    before = ", ";
}

static void double_member(const char *name, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    printf("%s\"%s\": %s%s", before, name, text, strpbrk(text, ".e") ? "" : ".0");
    before = ", ";
}

static void string_member(const char *name, const char *value) {
    printf("%s\"%s\": \"%s\"", before, name, value);
    before = ", ";
}

#define U(name) uint_member(#name, s->name)
#define I(name) int_member(#name, s->name)
#define D(name) double_member(#name, s->name)
#define T(name) string_member(#name, s->name)

static void print_quote(const void *sample) {
    const Fanfare_Quote *s = sample;
    U(MessageType), U(SequenceNumber), U(Timestamp), U(OrderId), U(Volume), U(Price);
    U(ExchangeId), U(SecurityId), U(SecurityType), U(SessionId);
}

static void print_new(const void *sample) {
    const Fanfare_New *s = sample;
    U(MessageType), U(SequenceNumber), U(Timestamp), U(OrderId), U(Volume), U(Price);
    U(ExchangeId), U(SecurityId), U(SecurityType), U(SessionId), U(Side);
}

static void print_change(const void *sample) {
    const Fanfare_Change *s = sample;
    U(MessageType), U(SequenceNumber), U(Timestamp), U(OrderId), U(Volume), U(Price);
    U(ExchangeId), U(SecurityId), U(SecurityType), U(SessionId), U(Side);
}

static void print_remove(const void *sample) {
    const Fanfare_Remove *s = sample;
    U(MessageType), U(SequenceNumber), U(Timestamp), U(OrderId), U(ExchangeId), U(SecurityId);
    U(SecurityType), U(SessionId), U(Side);
}

static void print_entry(const Fanfare_MarketData_MDEntries *s) {
    U(present), U(MDUpdateAction), U(MDPriceLevel), T(MDEntryType), U(OpenCloseSettleFlag);
    U(SecurityIDSource), U(SecurityID), U(RptSeq), D(MDEntryPx), U(MDEntryTime), I(MDEntrySize);
    U(NumberOfOrders), T(TradingSessionID), D(NetChgPrevDay), U(TradeVolume), T(TradeCondition);
    T(TickDirection), T(QuoteCondition), U(AggressorSide), T(MatchEventIndicator);
}

static void print_market_data(const void *sample) {
    const Fanfare_MarketData *s = sample;
    U(SecurityID), T(ApplVerID), T(MessageType), T(SenderCompID), U(MsgSeqNum), U(SendingTime);
    U(TradeDate);
    printf(", \"MDEntries\": [");
    for (uint32_t i = 0; i < s->MDEntries._length; i++) {
        printf(i ? ", {" : "{");
        before = "";
        print_entry(&s->MDEntries._buffer[i]);
        printf("}");
    }
    printf("]");
}

static void print_request(const Fanfare_QuoteRequest_RelatedSym *s) {
    U(present), T(Symbol), U(OrderQty), U(Side), U(TransactTime), U(QuoteType), U(SecurityID);
    U(SecurityIDSource);
}

static void print_quote_request(const void *sample) {
    const Fanfare_QuoteRequest *s = sample;
    U(SecurityID), U(present), T(ApplVerID), T(MessageType), T(SenderCompID), U(MsgSeqNum);
    U(SendingTime), T(QuoteReqID);
    printf(", \"RelatedSym\": [");
    for (uint32_t i = 0; i < s->RelatedSym._length; i++) {
        printf(i ? ", {" : "{");
        before = "";
        print_request(&s->RelatedSym._buffer[i]);
        printf("}");
    }
    printf("]");
}

struct kind {
    const char *name;
    const dds_topic_descriptor_t *type;
    void (*print)(const void *sample);
};

static const struct kind kinds[KINDS] = {
    {"Quote", &Fanfare_Quote_desc, print_quote},
    {"New", &Fanfare_New_desc, print_new},
    {"Change", &Fanfare_Change_desc, print_change},
    {"Remove", &Fanfare_Remove_desc, print_remove},
    {"MarketData", &Fanfare_MarketData_desc, print_market_data},
    {"QuoteRequest", &Fanfare_QuoteRequest_desc, print_quote_request},
};

struct end {
    const struct kind *kind;
    dds_entity_t reader, writer;
};

static int32_t checked(const char *what, int32_t code) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", what, dds_strretcode(-code));
        exit(1);
    }
    return code;
}

static void open_end(struct end *end, dds_entity_t participant, int reliable) {
    char back[64];
    dds_qos_t *qos = dds_create_qos();
    if (reliable)
        dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
    else
        dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    snprintf(back, sizeof back, "%s_back", end->kind->name);
    dds_entity_t topic = checked(
        "topic", dds_create_topic(participant, end->kind->type, end->kind->name, NULL, NULL));
    dds_entity_t other =
        checked("topic", dds_create_topic(participant, end->kind->type, back, NULL, NULL));
    end->reader = checked("reader", dds_create_reader(participant, topic, qos, NULL));
    end->writer = checked("writer", dds_create_writer(participant, other, qos, NULL));
    dds_delete_qos(qos);
}

/* Whether both know somebody: what a writer writes before, nobody gets. */
static int is_met(const struct end *end) {
    return checked("match", dds_get_matched_publications(end->reader, NULL, 0)) > 0 &&
           checked("match", dds_get_matched_subscriptions(end->writer, NULL, 0)) > 0;
}

static int exchange(struct end *end) {
    void *samples[BATCH] = {NULL};
    dds_sample_info_t infos[BATCH];
    int done = 0;
    int32_t n = checked("take", dds_take(end->reader, samples, infos, BATCH, BATCH));
    for (int32_t i = 0; i < n; i++) {
        if (!infos[i].valid_data)
            continue;
        printf("%s {", end->kind->name);
        before = "";
        end->kind->print(samples[i]);
        printf("}\n");
        checked("write", dds_write(end->writer, samples[i]));
        done++;
    }
    if (n > 0)
        checked("return", dds_return_loan(end->reader, samples, n));
    return done;
}

int main(int argc, char **argv) {
    struct end ends[KINDS];
    int opened = 0, done = 0, wanted;
    if (argc != 4)
        return 2;
    wanted = atoi(argv[2]);
    dds_entity_t participant = checked("participant", dds_create_participant(0, NULL, NULL));
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
        for (int i = 0; i < KINDS; i++)
            if (strcmp(kinds[i].name, name) == 0) {
                ends[opened].kind = &kinds[i];
                open_end(&ends[opened++], participant, atoi(argv[3]));
            }
    for (int i = 0, round = 0; wanted > 0 && i < opened && round < ROUNDS; round++) {
        if (is_met(&ends[i]))
            i++;
        else
            dds_sleepfor(DDS_MSECS(1));
    }
    printf("ready\n");
    fflush(stdout);
    for (int round = 0; done < wanted && round < ROUNDS; round++) {
        for (int i = 0; i < opened; i++)
            done += exchange(&ends[i]);
        dds_sleepfor(DDS_MSECS(1));
    }
    printf("%d\n", done);
    fflush(stdout);
    while (getchar() != EOF)
        continue;
    return dds_delete(participant) < 0;
}
