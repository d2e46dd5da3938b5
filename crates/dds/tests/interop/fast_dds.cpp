// The other side of the interoperation test on another vendor's middleware: Debian's Fast DDS, with
// the classes that its generator makes from our IDL. Takes each sample into an object, prints it
// member by member as JSON and writes it back from the object on the topic with _back behind its
// name. It says when it has met the other side, if it expects samples of it.
//
// fast_dds TOPICS SAMPLES RELIABLE DESCRIBED: names with commas between; how many samples to expect;
// 0 for best-effort writers, 1 for reliable ones; 1 if it announces descriptions of its types.
// PEER_DOMAIN in the environment is the domain.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/prctl.h>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include "typesPubSubTypes.h"
#include "typesTypeObject.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::types::ReturnCode_t;

namespace {

/// Milliseconds, and more on a busy machine.
const int ROUNDS = 60000;

const char *before = "";

void name(const char *text) {
    std::printf("%s\"%s\": ", before, text);
    before = ", ";
}

void member(const char *text, uint64_t value) {
    name(text);
    std::printf("%llu", static_cast<unsigned long long>(value));
}

void member(const char *text, int32_t value) {
    name(text);
    std::printf("%ld", static_cast<long>(value));
}

void member(const char *text, uint32_t value) { member(text, static_cast<uint64_t>(value)); }
void member(const char *text, uint8_t value) { member(text, static_cast<uint64_t>(value)); }

void member(const char *text, double value) {
    name(text);
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", value);
    const bool whole = std::string(digits).find_first_of(".e") == std::string::npos;
    std::printf("%s%s", digits, whole ? ".0" : "");
}

void member(const char *text, const std::string &value) {
    name(text);
    std::printf("\"%s\"", value.c_str());
}

#define M(field) member(#field, s.field())

void print(const Fanfare::Quote &s) {
    M(MessageType), M(SequenceNumber), M(Timestamp), M(OrderId), M(Volume), M(Price);
    M(ExchangeId), M(SecurityId), M(SecurityType), M(SessionId);
}

void print(const Fanfare::New &s) {
    M(MessageType), M(SequenceNumber), M(Timestamp), M(OrderId), M(Volume), M(Price);
    M(ExchangeId), M(SecurityId), M(SecurityType), M(SessionId), M(Side);
}

void print(const Fanfare::Change &s) {
    M(MessageType), M(SequenceNumber), M(Timestamp), M(OrderId), M(Volume), M(Price);
    M(ExchangeId), M(SecurityId), M(SecurityType), M(SessionId), M(Side);
}

void print(const Fanfare::Remove &s) {
    M(MessageType), M(SequenceNumber), M(Timestamp), M(OrderId), M(ExchangeId), M(SecurityId);
    M(SecurityType), M(SessionId), M(Side);
}

void print(const Fanfare::MarketData_MDEntries &s) {
    M(present), M(MDUpdateAction), M(MDPriceLevel), M(MDEntryType), M(OpenCloseSettleFlag);
    M(SecurityIDSource), M(SecurityID), M(RptSeq), M(MDEntryPx), M(MDEntryTime), M(MDEntrySize);
    M(NumberOfOrders), M(TradingSessionID), M(NetChgPrevDay), M(TradeVolume), M(TradeCondition);
    M(TickDirection), M(QuoteCondition), M(AggressorSide), M(MatchEventIndicator);
}

void print(const Fanfare::QuoteRequest_RelatedSym &s) {
    M(present), M(Symbol), M(OrderQty), M(Side), M(TransactTime), M(QuoteType), M(SecurityID);
    M(SecurityIDSource);
}

template <class Entry> void entries(const char *text, const std::vector<Entry> &all) {
    name(text);
    const char *between = "[";
    for (const Entry &entry : all) {
        std::printf("%s{", between);
        before = "";
        print(entry);
        std::printf("}");
        between = ", ";
    }
    std::printf(all.empty() ? "[]" : "]");
}

void print(const Fanfare::MarketData &s) {
    M(SecurityID), M(ApplVerID), M(MessageType), M(SenderCompID), M(MsgSeqNum), M(SendingTime);
    M(TradeDate);
    entries("MDEntries", s.MDEntries());
}

void print(const Fanfare::QuoteRequest &s) {
    M(SecurityID), M(present), M(ApplVerID), M(MessageType), M(SenderCompID), M(MsgSeqNum);
    M(SendingTime), M(QuoteReqID);
    entries("RelatedSym", s.RelatedSym());
}

template <class T> T *made(const char *what, T *entity) {
    if (entity == nullptr) {
        std::fprintf(stderr, "cannot create a %s\n", what);
        std::exit(1);
    }
    return entity;
}

struct Bus {
    DomainParticipant *participant;
    Publisher *publisher;
    Subscriber *subscriber;
    bool reliable;
};

/// Everything is kept, of however many instances.
template <class Policies> void keep_all(Policies &qos) {
    qos.history().kind = KEEP_ALL_HISTORY_QOS;
    // 0: no limit.
    qos.resource_limits().max_samples = 0;
    qos.resource_limits().max_instances = 0;
    qos.resource_limits().max_samples_per_instance = 0;
}

/// One topic.
struct End {
    /// Takes its samples, and returns how many there were.
    std::function<int()> exchange;
    /// Whether its reader and its writer know somebody: what is written before may be lost.
    std::function<bool()> is_met;
};

template <class Sample, class Support>
End open(const Bus &bus, const std::string &topic_name) {
    TypeSupport type(new Support());
    type.register_type(bus.participant);
    auto topic = [&](const std::string &named) {
        return made("topic", bus.participant->create_topic(named, type.get_type_name(),
                                                           TOPIC_QOS_DEFAULT));
    };
    DataReaderQos reading = DATAREADER_QOS_DEFAULT;
    keep_all(reading);
    DataWriterQos writing = DATAWRITER_QOS_DEFAULT;
    keep_all(writing);
    reading.reliability().kind = RELIABLE_RELIABILITY_QOS;
    writing.reliability().kind =
        bus.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    auto *reader = made("reader", bus.subscriber->create_datareader(topic(topic_name), reading));
    auto *writer =
        made("writer", bus.publisher->create_datawriter(topic(topic_name + "_back"), writing));
    auto is_met = [=]() {
        SubscriptionMatchedStatus heard;
        PublicationMatchedStatus hears;
        return reader->get_subscription_matched_status(heard) == ReturnCode_t::RETCODE_OK &&
               writer->get_publication_matched_status(hears) == ReturnCode_t::RETCODE_OK &&
               heard.current_count > 0 && hears.current_count > 0;
    };
    auto exchange = [=]() {
        Sample sample;
        SampleInfo info;
        int done = 0;
        while (reader->take_next_sample(&sample, &info) == ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data)
                continue;
            std::printf("%s {", topic_name.c_str());
            before = "";
            print(sample);
            std::printf("}\n");
            if (!writer->write(&sample)) {
                std::fprintf(stderr, "cannot write to %s_back\n", topic_name.c_str());
                std::exit(1);
            }
            done++;
        }
        return done;
    };
    return {exchange, is_met};
}

End open(const Bus &bus, const std::string &topic) {
    if (topic == "Quote")
        return open<Fanfare::Quote, Fanfare::QuotePubSubType>(bus, topic);
    if (topic == "New")
        return open<Fanfare::New, Fanfare::NewPubSubType>(bus, topic);
    if (topic == "Change")
        return open<Fanfare::Change, Fanfare::ChangePubSubType>(bus, topic);
    if (topic == "Remove")
        return open<Fanfare::Remove, Fanfare::RemovePubSubType>(bus, topic);
    if (topic == "MarketData")
        return open<Fanfare::MarketData, Fanfare::MarketDataPubSubType>(bus, topic);
    return open<Fanfare::QuoteRequest, Fanfare::QuoteRequestPubSubType>(bus, topic);
}

/// On loopback alone, without multicast.
DomainParticipant *join(uint32_t domain) {
    DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.emplace_back("127.0.0.1");
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
    eprosima::fastrtps::rtps::Locator_t peer;
    eprosima::fastrtps::rtps::IPLocator::setIPv4(peer, "127.0.0.1");
    qos.wire_protocol().builtin.initialPeersList.push_back(peer);
    auto *factory = DomainParticipantFactory::get_instance();
    return made("participant", factory->create_participant(domain, qos));
}

} // namespace

int main(int argc, char **argv) {
    const char *domain = std::getenv("PEER_DOMAIN");
    if (argc != 5 || domain == nullptr)
        return 2;
    if (argv[4][0] == '1')
        registertypesTypes();
    // It ends with the test that started it, however that ends.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    Bus bus{join(std::stoul(domain)), nullptr, nullptr, argv[3][0] == '1'};
    bus.publisher = made("publisher", bus.participant->create_publisher(PUBLISHER_QOS_DEFAULT));
    bus.subscriber =
        made("subscriber", bus.participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT));
    std::vector<End> ends;
    std::stringstream topics(argv[1]);
    for (std::string topic; std::getline(topics, topic, ',');)
        ends.push_back(open(bus, topic));
    const int wanted = std::stoi(argv[2]);
    auto pause = []() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
    for (auto &end : ends)
        for (int round = 0; wanted > 0 && !end.is_met() && round < ROUNDS; round++)
            pause();
    std::printf("ready\n");
    std::fflush(stdout);
    int done = 0;
    for (int round = 0; done < wanted && round < ROUNDS; round++) {
        for (auto &end : ends)
            done += end.exchange();
        pause();
    }
    std::printf("%d\n", done);
    std::fflush(stdout);
    while (std::getchar() != EOF)
        continue;
    bus.participant->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(bus.participant);
    return 0;
}
