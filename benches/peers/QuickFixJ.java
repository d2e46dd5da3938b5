// QuickFIX/J as a peer of the benchmarks. Arguments and output are those of quickfix.cpp.

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;
import quickfix.*;
import quickfix.field.*;

public final class QuickFixJ implements Application {
    private final boolean answers;
    private final long toSend;
    private final long toCome;
    private final AtomicLong came = new AtomicLong();
    private boolean hasBegun;

    private QuickFixJ(boolean answers, long toSend, long toCome) {
        this.answers = answers;
        this.toSend = toSend;
        this.toCome = toCome;
    }

    private static void say(String what, long number) {
        System.out.println(what + " " + number);
        System.out.flush();
    }

    private static Message order(long number) {
        Message message = new Message();
        message.getHeader().setField(new MsgType("D"));
        message.setField(new ClOrdID(Long.toString(number)));
        message.setField(new HandlInst('1'));
        message.setField(new Symbol("EURUSD"));
        message.setField(new Side('1'));
        message.setField(new TransactTime());
        message.setString(OrderQty.FIELD, "100000");
        message.setField(new OrdType('2'));
        message.setString(Price.FIELD, "1.23456");
        message.setField(new TimeInForce('0'));
        return message;
    }

    @Override
    public void onCreate(SessionID id) {}

    @Override
    public synchronized void onLogon(SessionID id) {
        if (toSend == 0 || hasBegun) {
            return;
        }
        hasBegun = true;
        Thread sender = new Thread(() -> {
            say("began", System.nanoTime());
            try {
                for (long number = 0; number < toSend; number++) {
                    Session.sendToTarget(order(number), id);
                }
            } catch (SessionNotFound error) {
                throw new IllegalStateException(error);
            }
        });
        sender.setDaemon(true);
        sender.start();
    }

    @Override
    public void onLogout(SessionID id) {}

    @Override
    public void toAdmin(Message message, SessionID id) {}

    @Override
    public void toApp(Message message, SessionID id) {}

    @Override
    public void fromAdmin(Message message, SessionID id) {}

    @Override
    public void fromApp(Message message, SessionID id) throws FieldNotFound {
        long number = came.incrementAndGet();
        if (answers) {
            answer(message, id, number);
        }
        if (number == toCome) {
            say("ended", System.nanoTime());
        }
    }

    private static void answer(Message order, SessionID id, long number) throws FieldNotFound {
        Message report = new Message();
        report.getHeader().setField(new MsgType("8"));
        report.setField(new OrderID(Long.toString(number)));
        report.setField(new ExecID(Long.toString(number)));
        report.setField(new ExecType('0'));
        report.setField(new OrdStatus('0'));
        for (int tag : new int[] {ClOrdID.FIELD, Symbol.FIELD, Side.FIELD}) {
            report.setString(tag, order.getString(tag));
        }
        report.setString(LeavesQty.FIELD, order.getString(OrderQty.FIELD));
        report.setString(CumQty.FIELD, "0");
        report.setString(AvgPx.FIELD, "0");
        try {
            Session.sendToTarget(report, id);
        } catch (SessionNotFound error) {
            throw new IllegalStateException(error);
        }
    }

    private static void parse(String file, String dictionary) throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        DataDictionary known = dictionary == null ? null : new DataDictionary(dictionary);
        int batch = 2000;
        long[] took = new long[300];
        long length = 0;
        for (int round = 0; round < took.length; round++) {
            long began = System.nanoTime();
            for (int i = 0; i < batch; i++) {
                Message message = new Message();
                message.fromString(text, known, true);
                if (known != null) {
                    known.validate(message);
                }
                length += message.bodyLength();
            }
            took[round] = (System.nanoTime() - began) / batch;
        }
        if (length == 0) {
            throw new IllegalStateException("no body");
        }
        // The first half warms up.
        long[] warm = Arrays.copyOfRange(took, took.length / 2, took.length);
        Arrays.sort(warm);
        say("parsed", warm[warm.length / 2]);
    }

    public static void main(String[] words) throws Exception {
        String what = words[0];
        if (what.equals("parse")) {
            parse(words[1], words.length > 2 ? words[2] : null);
            return;
        }
        long number = words.length > 2 ? Long.parseLong(words[2]) : 0;
        SessionSettings settings = new SessionSettings(words[1]);
        boolean sends = what.equals("send");
        QuickFixJ peer = new QuickFixJ(
                what.equals("answer"), sends ? number : 0, what.equals("receive") ? number : 0);
        MessageStoreFactory store = settings.isSetting("FileStorePath")
                ? new FileStoreFactory(settings)
                : new MemoryStoreFactory();
        DefaultMessageFactory messages = new DefaultMessageFactory();
        // Without one it logs every message to the terminal.
        LogFactory nothing = new SLF4JLogFactory(settings);
        Connector engine = sends
                ? new SocketInitiator(peer, store, settings, nothing, messages)
                : new SocketAcceptor(peer, store, settings, nothing, messages);
        engine.start();
        while (System.in.read() >= 0) {}
        engine.stop(true);
    }
}
