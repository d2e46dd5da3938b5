// QuickFIX C++ as a peer of the benchmarks.
//
//     quickfix answer SETTINGS         answers each order with an ExecutionReport, until stdin ends
//     quickfix receive SETTINGS COUNT  takes so many orders that warm up and as many again; prints
//                                      "began NANOSECONDS" between them, "ended NANOSECONDS" after
//     quickfix send SETTINGS COUNT     sends them all at its logon
//     quickfix parse FILE [DICTIONARY] prints "parsed NANOSECONDS", for each parse of the message in
//                                      the file, by the dictionary if there is one
//     quickfix typed FILE              reads the order in the file into a struct and builds it again;
//                                      prints "message MESSAGE", then "read NANOSECONDS" and
//                                      "build NANOSECONDS"
//     quickfix relay SETTINGS          sends what comes from PRODUCER to all other sessions that
//                                      are logged on, until stdin ends
//
// Times are CLOCK_MONOTONIC's, which processes share. With FileStorePath in the settings every
// message that is sent is kept. Between "typed: begin" and "typed: end" is what a user writes to
// read and build an order.
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
#include <thread>
#include <vector>

// typed: begin
#include <quickfix/fix44/NewOrderSingle.h>
#include <string>
// typed: end

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
    /// Sends twice `to_send` orders at the logon, and expects twice `to_come`.
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
                for (long number = 0; number < 2 * to_send_; ++number) {
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
        const long came = ++came_;
        if (came == to_come_)
            say("began", now());
        if (came == 2 * to_come_)
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

std::string content(const char *file) {
    std::ifstream input(file, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(input)), {});
}

/// The median of many batches, so that a pause of the machine is not in it. What `work` returns
/// adds up to something if the work is done.
template <class Work> long long timed(Work work) {
    const int batch = 200;
    std::vector<long long> took;
    double sum = 0;
    for (int round = 0; round < 300; ++round) {
        const long long began = now();
        for (int i = 0; i < batch; ++i)
            sum += work();
        took.push_back((now() - began) / batch);
    }
    if (sum == 0)
        throw std::runtime_error("no fields");
    std::sort(took.begin(), took.end());
    return took[took.size() / 2];
}

void parse(const char *file, const char *dictionary) {
    const std::string text = content(file);
    std::unique_ptr<FIX::DataDictionary> known;
    if (dictionary)
        known.reset(new FIX::DataDictionary(dictionary));
    say("parsed", timed([&] {
            FIX::Message message;
            if (known) {
                message.setString(text, true, known.get(), known.get());
                known->validate(message);
            } else
                message.setString(text, true);
            return message.totalFields();
        }));
}

// typed: begin
struct Order {
    std::string cl_ord_id;
    std::string symbol;
    char side;
    FIX::UtcTimeStamp transact_time;
    double order_qty;
    char ord_type;
    double price;
    char time_in_force;
};

Order read(const std::string &text) {
    const FIX::Message message(text, true);
    const auto &order = static_cast<const FIX44::NewOrderSingle &>(message);
    FIX::ClOrdID cl_ord_id;
    FIX::Symbol symbol;
    FIX::Side side;
    FIX::TransactTime transact_time;
    FIX::OrderQty order_qty;
    FIX::OrdType ord_type;
    FIX::Price price;
    FIX::TimeInForce time_in_force;
    return {
        order.get(cl_ord_id),
        order.get(symbol),
        order.get(side),
        order.get(transact_time),
        order.get(order_qty),
        order.get(ord_type),
        order.get(price),
        order.get(time_in_force),
    };
}

std::string build(const Order &order, int number, const FIX::UtcTimeStamp &now) {
    FIX44::NewOrderSingle message(order.cl_ord_id, order.side,
                                  FIX::TransactTime(order.transact_time, 3), order.ord_type);
    message.getHeader().set(FIX::SenderCompID("BUYSIDE"));
    message.getHeader().set(FIX::TargetCompID("SELLSIDE"));
    message.getHeader().set(FIX::MsgSeqNum(number));
    message.getHeader().set(FIX::SendingTime(now, 3));
    message.set(FIX::HandlInst('1'));
    message.set(FIX::Symbol(order.symbol));
    message.set(FIX::OrderQty(order.order_qty));
    message.set(FIX::Price(order.price));
    message.set(FIX::TimeInForce(order.time_in_force));
    return message.toString();
}
// typed: end

/// A sum in which every value is.
double weight(const Order &order) {
    return order.cl_ord_id.size() + order.symbol.size() + order.side +
           order.transact_time.getMillisecond() + order.order_qty + order.ord_type + order.price +
           order.time_in_force;
}

void typed(const char *file) {
    const std::string text = content(file);
    const Order order = read(text);
    std::cout << "message " << build(order, 1234, order.transact_time) << std::endl;
    say("read", timed([&] { return weight(read(text)); }));
    say("build", timed([&] { return build(order, 1234, order.transact_time).size(); }));
}

int run(int count, char **words) {
    const std::string what = words[1];
    if (what == "parse") {
        parse(words[2], count > 3 ? words[3] : nullptr);
        return 0;
    }
    if (what == "typed") {
        typed(words[2]);
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
        std::cerr << "usage: quickfix answer|receive|send|parse|typed|relay FILE "
                     "[COUNT|DICTIONARY]\n";
        return 2;
    }
    try {
        return run(count, words);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
