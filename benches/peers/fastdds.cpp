// Fast DDS as a peer of the benchmarks.
//
//     fastdds udp|shm ROLE SIZE WARM_UP COUNT DOMAIN    as cyclone.c
//
// udp is UDP on 127.0.0.1, and shm is shared memory.
//
// Shared memory is data sharing for round trips, and the shared-memory transport for throughput, since
// a writer that shares its data overwrites samples that are received and not yet taken. Where one
// sample is under way at a time the history keeps the last: a listener's write may not wait for an
// acknowledgement that its own thread receives.
//
// ping and sink add up the words of a sample's bytes: a wrong sum ends the program, as a wrong
// number does.
//
// A sink warms up for two seconds at most, and measures for five.
//
// Samples are taken and written by listeners, as loans. The type is plain and bounded, as data sharing
// needs it. Heartbeats come every 10 ms and are answered at once, as the library's page on reliable
// writers proposes for a history that fills.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::types::ReturnCode_t;
namespace rtps = eprosima::fastrtps::rtps;

namespace {

using Clock = std::chrono::steady_clock;

const std::size_t LONGEST = 8192;
/// Bytes of samples that a history holds.
const std::size_t HISTORY = 4 << 20;
const uint32_t HEADER = 4;
/// The longest times for which a sink warms up and measures.
const std::chrono::seconds LONGEST_WARM_UP(2);
const std::chrono::seconds LONGEST_FLOW(5);

/// Of its payload only as much is there as the program's argument says.
struct Sample {
    uint64_t number;
    uint8_t payload[LONGEST - sizeof(uint64_t)];
};

[[noreturn]] void fail(const std::string &what) {
    std::fprintf(stderr, "%s\n", what.c_str());
    std::_Exit(1);
}

template <class T> T *made(const char *what, T *pointer) {
    if (pointer == nullptr)
        fail(std::string(what) + " cannot be made");
    return pointer;
}

void say(const std::string &line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

/// A number and bytes: in memory as on the wire, behind the header of CDR.
class SampleType : public TopicDataType {
  public:
    explicit SampleType(std::size_t size) : size_(size) {
        setName("Bench::Sample");
        m_typeSize = static_cast<uint32_t>(size) + HEADER;
        m_isGetKeyDefined = false;
    }

    bool serialize(void *data, rtps::SerializedPayload_t *payload) override {
        const uint8_t header[HEADER] = {0, 1, 0, 0};
        std::memcpy(payload->data, header, HEADER);
        std::memcpy(payload->data + HEADER, data, size_);
        payload->encapsulation = CDR_LE;
        payload->length = m_typeSize;
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t *payload, void *data) override {
        if (payload->length < m_typeSize)
            return false;
        std::memcpy(data, payload->data + HEADER, size_);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void *) override {
        return [this]() { return m_typeSize; };
    }

    void *createData() override { return std::calloc(1, size_); }
    void deleteData(void *data) override { std::free(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
    bool is_bounded() const override { return true; }
    bool is_plain() const override { return true; }
    bool construct_sample(void *memory) const override {
        std::memset(memory, 0, size_);
        return true;
    }

  private:
    const std::size_t size_;
};

DomainParticipant *join(uint32_t domain, bool by_memory) {
    DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
    qos.transport().use_builtin_transports = false;
    if (by_memory) {
        auto memory = std::make_shared<eprosima::fastdds::rtps::SharedMemTransportDescriptor>();
        memory->segment_size(2 * HISTORY);
        qos.transport().user_transports.push_back(memory);
    } else {
        auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
        udp->interfaceWhiteList.emplace_back("127.0.0.1");
        udp->sendBufferSize = HISTORY;
        udp->receiveBufferSize = HISTORY;
        qos.transport().user_transports.push_back(udp);
        rtps::Locator_t peer;
        rtps::IPLocator::setIPv4(peer, "127.0.0.1");
        qos.wire_protocol().builtin.initialPeersList.push_back(peer);
    }
    auto *factory = DomainParticipantFactory::get_instance();
    return made("participant", factory->create_participant(domain, qos));
}

/// Calls a function with each sample, in the thread that receives.
class Listener : public DataReaderListener {
  public:
    explicit Listener(std::function<void(const Sample &)> each) : each_(std::move(each)) {}

    void on_data_available(DataReader *reader) override {
        LoanableSequence<Sample> samples;
        SampleInfoSeq infos;
        while (reader->take(samples, infos) == ReturnCode_t::RETCODE_OK) {
            for (LoanableCollection::size_type i = 0; i < infos.length(); ++i)
                if (infos[i].valid_data)
                    each_(samples[i]);
            reader->return_loan(samples, infos);
        }
    }

  private:
    const std::function<void(const Sample &)> each_;
};

class Ends {
  public:
    Ends(bool by_memory, bool is_trip, std::size_t size, uint32_t domain)
        : size_(size), shares_data_(by_memory && is_trip), keeps_all_(!is_trip),
          participant_(join(domain, by_memory)), type_(new SampleType(size)), outgoing_() {
        type_.register_type(participant_);
        for (std::size_t i = 0; i < sizeof outgoing_.payload; ++i)
            outgoing_.payload[i] = static_cast<uint8_t>((sizeof outgoing_.number + i) % 251);
        payload_sum_ = sum_of(outgoing_);
    }

    ~Ends() {
        participant_->delete_contained_entities();
        DomainParticipantFactory::get_instance()->delete_participant(participant_);
    }

    void write_to(const char *topic) {
        DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
        policies(qos);
        qos.reliable_writer_qos().times.heartbeatPeriod = {0, 10 * 1000 * 1000};
        qos.reliable_writer_qos().times.nackResponseDelay = {0, 0};
        qos.reliability().max_blocking_time = {10, 0};
        auto *publisher = made("publisher", participant_->create_publisher(PUBLISHER_QOS_DEFAULT));
        writer_ = made("writer", publisher->create_datawriter(topic_of(topic), qos));
    }

    void read_from(const char *topic, std::function<void(const Sample &)> each) {
        DataReaderQos qos = DATAREADER_QOS_DEFAULT;
        policies(qos);
        qos.reliable_reader_qos().times.heartbeatResponseDelay = {0, 0};
        auto *subscriber =
            made("subscriber", participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT));
        listener_.reset(new Listener(std::move(each)));
        auto *reader = subscriber->create_datareader(topic_of(topic), qos, listener_.get());
        reader_ = made("reader", reader);
    }

    /// Waits until both ends have met the other side, and it has met them.
    void wait_for_match() const {
        for (;;) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            SubscriptionMatchedStatus in;
            PublicationMatchedStatus out;
            if (writer_ != nullptr)
                writer_->get_publication_matched_status(out);
            if (reader_ != nullptr)
                reader_->get_subscription_matched_status(in);
            if ((writer_ == nullptr || out.current_count > 0) &&
                (reader_ == nullptr || in.current_count > 0))
                break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }

    /// Writes a copy of a sample, on loan from the writer.
    void send(const Sample &sample) {
        void *loan = nullptr;
        if (writer_->loan_sample(loan) != ReturnCode_t::RETCODE_OK)
            return copy(sample);
        std::memcpy(loan, &sample, size_);
        if (!writer_->write(loan))
            fail("a sample cannot be written");
    }

    void send(uint64_t number) {
        outgoing_.number = number;
        send(outgoing_);
    }

    /// Reads a sample whole.
    void check(const Sample &sample) const {
        if (sum_of(sample) != payload_sum_)
            fail("sample " + std::to_string(sample.number) + " has other bytes than were sent");
    }

  private:
    /// Adds up the words of a payload.
    uint64_t sum_of(const Sample &sample) const {
        const std::size_t words = (size_ - sizeof sample.number) / sizeof(uint64_t);
        uint64_t sum = 0;
        for (std::size_t i = 0; i < words; ++i) {
            uint64_t word;
            std::memcpy(&word, sample.payload + i * sizeof word, sizeof word);
            sum += word;
        }
        return sum;
    }

    /// Waits for room in the history, as no loan does.
    void copy(const Sample &sample) {
        if (!writer_->write(const_cast<Sample *>(&sample)))
            fail("a sample cannot be written");
    }

    template <class Qos> void policies(Qos &qos) const {
        const auto samples = static_cast<int32_t>(HISTORY / size_ < 8192 ? HISTORY / size_ : 8192);
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.durability().kind = VOLATILE_DURABILITY_QOS;
        qos.history().kind = keeps_all_ ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
        qos.history().depth = samples;
        qos.resource_limits().max_samples = samples;
        qos.resource_limits().allocated_samples = samples;
        qos.resource_limits().max_instances = 1;
        qos.resource_limits().max_samples_per_instance = samples;
        qos.endpoint().history_memory_policy = rtps::PREALLOCATED_MEMORY_MODE;
        if (shares_data_)
            qos.data_sharing().automatic();
        else
            qos.data_sharing().off();
    }

    Topic *topic_of(const char *name) {
        auto *topic = participant_->create_topic(name, type_.get_type_name(), TOPIC_QOS_DEFAULT);
        return made("topic", topic);
    }

    const std::size_t size_;
    const bool shares_data_;
    const bool keeps_all_;
    DomainParticipant *const participant_;
    TypeSupport type_;
    Sample outgoing_;
    uint64_t payload_sum_ = 0;
    std::unique_ptr<Listener> listener_;
    DataWriter *writer_ = nullptr;
    DataReader *reader_ = nullptr;
};

void expect(uint64_t number, uint64_t expected) {
    if (number != expected)
        fail("sample " + std::to_string(number) + " in place of " + std::to_string(expected));
}

void ping(Ends &ends, uint64_t warm_up, uint64_t count) {
    struct {
        uint64_t number = 0;
        Clock::time_point sent;
        std::vector<int64_t> nanos;
    } trips;
    trips.nanos.reserve(count);
    ends.write_to("Ping");
    ends.read_from("Pong", [&trips, &ends, warm_up, count](const Sample &sample) {
        ends.check(sample);
        const auto came = Clock::now();
        expect(sample.number, trips.number);
        if (trips.number >= warm_up)
            trips.nanos.push_back(std::chrono::nanoseconds(came - trips.sent).count());
        if (++trips.number < warm_up + count) {
            trips.sent = Clock::now();
            return ends.send(trips.number);
        }
        std::sort(trips.nanos.begin(), trips.nanos.end());
        say("p50 " + std::to_string(trips.nanos[count / 2]));
        say("p99 " + std::to_string(trips.nanos[count * 99 / 100]));
    });
    ends.wait_for_match();
    ends.send(uint64_t{0});
    while (std::getchar() != EOF)
        continue;
}

void sink(Ends &ends, uint64_t warm_up, uint64_t count) {
    struct {
        uint64_t number = 0;
        uint64_t warm = 0;
        Clock::time_point began;
        bool is_told = false;
    } flow;
    const uint64_t total = warm_up + count;
    ends.read_from("Flow", [&flow, &ends, warm_up, total](const Sample &sample) {
        ends.check(sample);
        expect(sample.number, flow.number);
        const Clock::time_point now = Clock::now();
        if (flow.number++ == 0)
            flow.began = now;
        const std::chrono::duration<double> took = now - flow.began;
        if (flow.warm == 0) {
            if (flow.number > warm_up || took > LONGEST_WARM_UP) {
                flow.warm = flow.number;
                flow.began = now;
            }
            return;
        }
        if (flow.is_told || (flow.number < total && took < LONGEST_FLOW))
            return;
        flow.is_told = true;
        const auto measured = static_cast<double>(flow.number - flow.warm);
        say("rate " + std::to_string(measured / took.count()));
    });
    say("ready");
    while (std::getchar() != EOF)
        continue;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 7) {
        std::fprintf(stderr, "fastdds udp|shm pong|ping|sink|source SIZE WARM_UP COUNT DOMAIN\n");
        return 2;
    }
    const std::string role = argv[2];
    const uint64_t warm_up = std::stoull(argv[4]);
    const uint64_t count = std::stoull(argv[5]);
    const bool by_memory = std::string(argv[1]) == "shm";
    const bool is_trip = role == "ping" || role == "pong";
    Ends ends(by_memory, is_trip, std::stoul(argv[3]),
              static_cast<uint32_t>(std::stoul(argv[6])));
    if (role == "ping") {
        ping(ends, warm_up, count);
    } else if (role == "sink") {
        sink(ends, warm_up, count);
    } else if (role == "pong") {
        ends.write_to("Pong");
        ends.read_from("Ping", [&ends](const Sample &sample) { ends.send(sample); });
        say("ready");
        while (std::getchar() != EOF)
            continue;
    } else {
        ends.write_to("Flow");
        ends.wait_for_match();
        // At once: a write that waits for room may take minutes longer, as the thread of heartbeats
        // holds the writer's lock.
        std::thread end([] {
            while (std::getchar() != EOF)
                continue;
            std::_Exit(0);
        });
        for (uint64_t number = 0; number < warm_up + count; ++number)
            ends.send(number);
        end.join();
    }
    return 0;
}
