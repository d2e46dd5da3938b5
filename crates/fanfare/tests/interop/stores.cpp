// Writes a file store of QuickFIX to the folder of the first argument: 300 messages, 42 next.
#include <quickfix/FileStore.h>
#include <quickfix/SessionID.h>

int main(int, char** arguments)
{
    FIX::FileStoreFactory factory(arguments[1]);
    FIX::MessageStore* store = factory.create(FIX::SessionID("FIX.4.4", "BUY", "SELL"));
    for (int seq = 1; seq <= 300; ++seq) {
        std::string id = "\00134=" + std::to_string(seq);
        store->set(seq, "8=FIX.4.4\0019=40\00135=D\00149=BUY\00156=SELL" + id + "\00110=000\001");
        store->incrNextSenderMsgSeqNum();
    }
    store->setNextTargetMsgSeqNum(42);
    factory.destroy(store);
}
