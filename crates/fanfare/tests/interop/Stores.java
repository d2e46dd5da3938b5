// Writes a file store of QuickFIX/J to the folder of the first argument: 300 messages, 42 next.

import quickfix.FileStoreFactory;
import quickfix.MessageStore;
import quickfix.SessionID;
import quickfix.SessionSettings;

public class Stores {
    public static void main(String[] arguments) throws Exception {
        SessionID session = new SessionID("FIX.4.4", "BUY", "SELL");
        SessionSettings settings = new SessionSettings();
        settings.setString(session, "FileStorePath", arguments[0]);
        MessageStore store = new FileStoreFactory(settings).create(session);
        for (int seq = 1; seq <= 300; seq++) {
            String id = "\00134=" + seq;
            store.set(seq, "8=FIX.4.4\0019=40\00135=D\00149=BUY\00156=SELL" + id + "\00110=000\001");
            store.incrNextSenderMsgSeqNum();
        }
        store.setNextTargetMsgSeqNum(42);
    }
}
