// QuickFIX C++ as a peer of the benchmarks.
//
//     quickfix answer SETTINGS         answers each order with an ExecutionReport, until stdin ends
//     quickfix receive SETTINGS COUNT  takes so many orders, then prints "ended NANOSECONDS"
//     quickfix send SETTINGS COUNT     sends them at its logon, and prints "began NANOSECONDS"
//     quickfix parse FILE [DICTIONARY] prints "parsed NANOSECONDS", for each parse of the message in
//                                      the file, by the dictionary if there is one
//     quickfix relay SETTINGS          sends what comes from PRODUCER to all other sessions that
//                                      are logged on, until stdin ends
//
// Times are CLOCK_MONOTONIC's, which processes share. With FileStorePath in the settings every
// message that is sent is kept.
#include <quickfix/Application.h>
#include <quickfix/DataDictionary.h>
#include <quickfix/Fields.h>
#include <quickfix/FileStore.h>
#include <quickfix/MessageStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketAcceptor.h>
#include <quickfix/ThreadedSocketAcceptor.h>
#include <quickfix/ThreadedSocketInitiator.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

long long now() {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

void say(const char *what, long long number) {
    std::cout << what << ' ' << number << std::endl;
}

/// The order that all peers send: one that fanfare throughput sends, field by field.
FIX::Message order(long number) {
    FIX::Message message;
    message.getHeader().setField(FIX::MsgType("D"));
    message.setField(FIX::ClOrdID(std::to_string(number)));
    message.setField(FIX::HandlInst('1'));
    message.setField(FIX::Symbol("EURUSD"));
    message.setField(FIX::Side('1'));
    message.setField(FIX::TransactTime());
    message.setField(FIX::FIELD::OrderQty, "100000");
    message.setField(FIX::OrdType('2'));
    message.setField(FIX::FIELD::Price, "1.23456");
    message.setField(FIX::TimeInForce('0'));
    return message;
}

class Peer : public FIX::Application {
  public:
    /// Sends `to_send` orders at the logon, and expects `to_come`.
    Peer(bool answers, long to_send, long to_come)
        : answers_(answers), to_send_(to_send), to_come_(to_come) {}

    ~Peer() {
        if (sender_.joinable())
            sender_.join();
    }

    void onCreate(const FIX::SessionID &) override {}
    void onLogon(const FIX::SessionID &id) override {
        if (to_send_ > 0 && !sender_.joinable())
            sender_ = std::thread([this, id] {
                say("began", now());
                for (long number = 0; number < to_send_; ++number) {
                    FIX::Message message = order(number);
                    FIX::Session::sendToTarget(message, id);
                }
            });
    }
    void onLogout(const FIX::SessionID &) override {}
    void toAdmin(FIX::Message &, const FIX::SessionID &) override {}
    void toApp(FIX::Message &, const FIX::SessionID &) throw(FIX::DoNotSend) override {}
    void fromAdmin(const FIX::Message &, const FIX::SessionID &) throw(
        FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue,
        FIX::RejectLogon) override {}
    void fromApp(const FIX::Message &message, const FIX::SessionID &id) throw(
        FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue,
        FIX::UnsupportedMessageType) override {
        if (answers_)
            answer(message, id);
        if (++came_ == to_come_)
            say("ended", now());
    }

  private:
    void answer(const FIX::Message &order, const FIX::SessionID &id) {
        FIX::Message report;
        report.getHeader().setField(FIX::MsgType("8"));
        const std::string number = std::to_string(came_ + 1);
        report.setField(FIX::OrderID(number));
        report.setField(FIX::ExecID(number));
        report.setField(FIX::ExecType('0'));
        report.setField(FIX::OrdStatus('0'));
        for (int tag : {FIX::FIELD::ClOrdID, FIX::FIELD::Symbol, FIX::FIELD::Side})
            report.setField(tag, order.getField(tag));
        report.setField(FIX::FIELD::LeavesQty, order.getField(FIX::FIELD::OrderQty));
        report.setField(FIX::FIELD::CumQty, "0");
        report.setField(FIX::FIELD::AvgPx, "0");
        FIX::Session::sendToTarget(report, id);
    }

    const bool answers_;
    const long to_send_;
    const long to_come_;
    std::atomic<long> came_{0};
    std::thread sender_;
};

class Relay : public FIX::NullApplication {
  public:
    void onLogon(const FIX::SessionID &id) override {
        if (id.getTargetCompID().getValue() != "PRODUCER")
            consumers_.insert(id);
    }
    void onLogout(const FIX::SessionID &id) override { consumers_.erase(id); }
    void fromApp(const FIX::Message &message, const FIX::SessionID &) throw(
        FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue,
        FIX::UnsupportedMessageType) override {
        FIX::Message copy = message;
        for (const FIX::SessionID &id : consumers_)
            FIX::Session::sendToTarget(copy, id);
    }

  private:
    // One thread serves all sessions.
    std::set<FIX::SessionID> consumers_;
};

template <class Engine> void serve(FIX::Application &peer, FIX::SessionSettings &settings) {
    std::unique_ptr<FIX::MessageStoreFactory> store;
    if (settings.get().has("FileStorePath"))
        store.reset(new FIX::FileStoreFactory(settings));
    else
        store.reset(new FIX::MemoryStoreFactory());
    Engine engine(peer, *store, settings);
    engine.start();
    std::string line;
    while (std::getline(std::cin, line)) {
    }
    engine.stop(true);
}

/// Medians of many batches, so that a pause of the machine is not in it.
void parse(const char *file, const char *dictionary) {
    std::ifstream input(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(input)), {});
    std::unique_ptr<FIX::DataDictionary> known;
    if (dictionary)
        known.reset(new FIX::DataDictionary(dictionary));
    const int batch = 200;
    std::vector<long long> took;
    size_t fields = 0;
    for (int round = 0; round < 300; ++round) {
        const long long began = now();
        for (int i = 0; i < batch; ++i) {
            FIX::Message message;
            if (known) {
                message.setString(text, true, known.get(), known.get());
                known->validate(message);
            } else
                message.setString(text, true);
            fields += message.totalFields();
        }
        took.push_back((now() - began) / batch);
    }
    if (fields == 0)
        throw std::runtime_error("no fields");
    std::sort(took.begin(), took.end());
    say("parsed", took[took.size() / 2]);
}

int run(int count, char **words) {
    const std::string what = words[1];
    if (what == "parse") {
        parse(words[2], count > 3 ? words[3] : nullptr);
        return 0;
    }
    FIX::SessionSettings settings(words[2]);
    if (what == "relay") {
        Relay relay;
        serve<FIX::SocketAcceptor>(relay, settings);
        return 0;
    }
    const long number = count > 3 ? std::atol(words[3]) : 0;
    Peer peer(what == "answer", what == "send" ? number : 0, what == "receive" ? number : 0);
    if (what == "send")
        serve<FIX::ThreadedSocketInitiator>(peer, settings);
    else
        serve<FIX::ThreadedSocketAcceptor>(peer, settings);
    return 0;
}

} // namespace

int main(int count, char **words) {
    if (count < 3) {
        std::cerr << "usage: quickfix answer|receive|send|parse|relay FILE [COUNT|DICTIONARY]\n";
        return 2;
    }
    try {
        return run(count, words);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
