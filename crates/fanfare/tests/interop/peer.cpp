// A counterparty on QuickFIX C++: the engine runs the session, stdin controls the messages sent.
//
//     peer acceptor|initiator SETTINGS
//
// It prints to stdout, a line each: "logon", "logout", and every message of the application and of
// the session as "in MESSAGE" or "out MESSAGE", `|` for SOH. It reads commands from stdin, and ends
// with it:
//     order ID            sends NewOrderSingle(D) with this ClOrdID(11)
//     next-sender N       continues with this MsgSeqNum(34)
//     password PASSWORD   logs on as "me" with this Password(554) from now on
//     send 35=V|...       sends this body as a message, its groups by the session's dictionary
//     logout, logon, reset
// Orders, security definitions and e-mails are echoed.
#include <quickfix/Application.h>
#include <quickfix/Fields.h>
#include <quickfix/FileStore.h>
#include <quickfix/MessageStore.h>
#include <quickfix/Session.h>
#include <quickfix/SessionSettings.h>
#include <quickfix/SocketAcceptor.h>
#include <quickfix/SocketInitiator.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>

namespace {

std::mutex output;

void say(std::string line) {
    std::replace(line.begin(), line.end(), '\001', '|');
    std::lock_guard<std::mutex> guard(output);
    std::cout << line << std::endl;
}

bool before_42(const FIX::SessionID &id) {
    const std::string &version = id.getBeginString().getValue();
    return version == "FIX.4.0" || version == "FIX.4.1";
}

class Peer : public FIX::Application {
  public:
    explicit Peer(bool echoes) : echoes_(echoes) {}

    void onCreate(const FIX::SessionID &) override {}
    void onLogon(const FIX::SessionID &) override { say("logon"); }
    void onLogout(const FIX::SessionID &id) override {
        std::lock_guard<std::mutex> guard(known_mutex_);
        for (auto at = known_.begin(); at != known_.end();)
            at = at->first == id ? known_.erase(at) : std::next(at);
        say("logout");
    }
    void toAdmin(FIX::Message &message, const FIX::SessionID &) override {
        std::unique_lock<std::mutex> guard(password_mutex_);
        if (!password_.empty() && message.getHeader().getField(FIX::FIELD::MsgType) == "A") {
            message.setField(FIX::FIELD::Username, "me");
            message.setField(FIX::FIELD::Password, password_);
        }
        guard.unlock();
        say("out " + message.toString());
    }
    void toApp(FIX::Message &message, const FIX::SessionID &) throw(FIX::DoNotSend) override {
        say("out " + message.toString());
    }
    void fromAdmin(const FIX::Message &message, const FIX::SessionID &) throw(
        FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue,
        FIX::RejectLogon) override {
        say("in " + message.toString());
    }
    void fromApp(const FIX::Message &message, const FIX::SessionID &id) throw(
        FIX::FieldNotFound, FIX::IncorrectDataFormat, FIX::IncorrectTagValue,
        FIX::UnsupportedMessageType) override {
        say("in " + message.toString());
        if (!echoes_)
            return;
        const std::string &type = message.getHeader().getField(FIX::FIELD::MsgType);
        const bool is_order = type == "D";
        if (!is_order && type != "C" && (type != "d" || before_42(id)))
            throw FIX::UnsupportedMessageType();
        if (is_order && seen_again(message, id))
            return;
        FIX::Message echo = message;
        FIX::Session::sendToTarget(echo, id);
    }

    void set_password(const std::string &password) {
        std::lock_guard<std::mutex> guard(password_mutex_);
        password_ = password;
    }

  private:
    /// Handles a possible resend of an order that came before.
    bool seen_again(const FIX::Message &message, const FIX::SessionID &id) {
        FIX::PossResend again(false);
        message.getHeader().getFieldIfSet(again);
        std::lock_guard<std::mutex> guard(known_mutex_);
        const std::string &order = message.getField(FIX::FIELD::ClOrdID);
        return !known_.insert(std::make_pair(id, order)).second && again;
    }

    bool echoes_;
    std::mutex password_mutex_;
    std::string password_;
    std::mutex known_mutex_;
    std::set<std::pair<FIX::SessionID, std::string>> known_;
};

void send_order(const FIX::SessionID &id, const std::string &order) {
    FIX::Message message;
    message.getHeader().setField(FIX::MsgType("D"));
    message.setField(FIX::ClOrdID(order));
    message.setField(FIX::HandlInst('3'));
    message.setField(FIX::Symbol("INTC"));
    message.setField(FIX::Side('1'));
    message.setField(FIX::FIELD::OrderQty, "100");
    message.setField(FIX::OrdType('1'));
    if (!before_42(id))
        message.setField(FIX::TransactTime());
    FIX::Session::sendToTarget(message, id);
}

/// Returns a message of this body, `|` for SOH, parsed by the session's dictionaries.
FIX::Message parsed(FIX::Session &session, std::string body) {
    std::replace(body.begin(), body.end(), '|', '\001');
    // A group at the end is read to the trailer.
    body += "10=000\001";
    const FIX::BeginString begin = session.getSessionID().getBeginString();
    const std::string front =
        "8=" + begin.getValue() + "\0019=" + std::to_string(body.size()) + '\001';
    const FIX::DataDictionaryProvider &known = session.getDataDictionaryProvider();
    const FIX::DataDictionary &transport = known.getSessionDataDictionary(begin);
    if (begin.getValue() != "FIXT.1.1")
        return FIX::Message(front + body, transport, false);
    const FIX::ApplVerID version(session.getSenderDefaultApplVerID());
    return FIX::Message(front + body, transport, known.getApplicationDataDictionary(version), false);
}

/// Executes the commands on stdin for the one session of an initiator, or the first of an acceptor.
void obey(Peer &peer, const FIX::SessionID &id) {
    FIX::Session &session = *FIX::Session::lookupSession(id);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string word, argument;
        words >> word >> argument;
        if (word == "order")
            send_order(id, argument);
        else if (word == "send") {
            FIX::Message message = parsed(session, line.substr(5));
            FIX::Session::sendToTarget(message, id);
        } else if (word == "next-sender")
            session.setNextSenderMsgSeqNum(std::atoi(argument.c_str()));
        else if (word == "password")
            peer.set_password(argument);
        else if (word == "logout")
            session.logout();
        else if (word == "logon")
            session.logon();
        else if (word == "reset")
            session.reset();
        else
            say("error: unknown command " + line);
    }
}

int run(bool acceptor, const char *file) {
    FIX::SessionSettings settings(file);
    Peer peer(acceptor);
    std::unique_ptr<FIX::MessageStoreFactory> store;
    if (settings.get().has("FileStorePath"))
        store.reset(new FIX::FileStoreFactory(settings));
    else
        store.reset(new FIX::MemoryStoreFactory());
    const FIX::SessionID id = *settings.getSessions().begin();
    if (acceptor) {
        FIX::SocketAcceptor engine(peer, *store, settings);
        engine.start();
        obey(peer, id);
        engine.stop(true);
    } else {
        FIX::SocketInitiator engine(peer, *store, settings);
        engine.start();
        obey(peer, id);
        engine.stop(true);
    }
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 3) {
        std::cerr << "usage: peer acceptor|initiator SETTINGS\n";
        return 2;
    }
    try {
        return run(std::string(argv[1]) == "acceptor", argv[2]);
    } catch (const std::exception &error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
