// QuickFIX/J as a peer of the benchmarks. Arguments, output and marks are those of quickfix.cpp.

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicLong;
// typed: begin
import java.nio.charset.StandardCharsets;
import java.time.LocalDateTime;
import quickfix.*;
import quickfix.field.*;
import quickfix.fix44.NewOrderSingle;
// typed: end

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
            try {
                for (long number = 0; number < 2 * toSend; number++) {
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
            say("began", System.nanoTime());
        }
        if (number == 2 * toCome) {
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

    /** The median of many batches. What the work returns adds up to something if it is done. */
    private static long timed(Callable<Double> work) throws Exception {
        int batch = 2000;
        long[] took = new long[300];
        double sum = 0;
        for (int round = 0; round < took.length; round++) {
            long began = System.nanoTime();
            for (int i = 0; i < batch; i++) {
                sum += work.call();
            }
            took[round] = (System.nanoTime() - began) / batch;
        }
        if (sum == 0) {
            throw new IllegalStateException("no fields");
        }
        // The first half warms up.
        long[] warm = Arrays.copyOfRange(took, took.length / 2, took.length);
        Arrays.sort(warm);
        return warm[warm.length / 2];
    }

    private static void parse(String file, String dictionary) throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        String text = new String(bytes, StandardCharsets.ISO_8859_1);
        DataDictionary known = dictionary == null ? null : new DataDictionary(dictionary);
        say("parsed", timed(() -> {
            Message message = new Message();
            message.fromString(text, known, true);
            if (known != null) {
                known.validate(message);
            }
            return (double) message.bodyLength();
        }));
    }

    // typed: begin
    private record Order(
            String clOrdID,
            String symbol,
            char side,
            LocalDateTime transactTime,
            double orderQty,
            char ordType,
            double price,
            char timeInForce) {}

    private static Order read(byte[] bytes) throws InvalidMessage, FieldNotFound {
        NewOrderSingle order = new NewOrderSingle();
        order.fromString(new String(bytes, StandardCharsets.ISO_8859_1), null, true);
        return new Order(
                order.getClOrdID().getValue(),
                order.getSymbol().getValue(),
                order.getSide().getValue(),
                order.getTransactTime().getValue(),
                order.getOrderQty().getValue(),
                order.getOrdType().getValue(),
                order.getPrice().getValue(),
                order.getTimeInForce().getValue());
    }

    private static byte[] build(Order order, int number, LocalDateTime now) {
        NewOrderSingle message = new NewOrderSingle(
                new ClOrdID(order.clOrdID),
                new Side(order.side),
                new TransactTime(order.transactTime),
                new OrdType(order.ordType));
        message.getHeader().setField(new SenderCompID("BUYSIDE"));
        message.getHeader().setField(new TargetCompID("SELLSIDE"));
        message.getHeader().setField(new MsgSeqNum(number));
        message.getHeader().setField(new SendingTime(now));
        message.set(new HandlInst('1'));
        message.set(new Symbol(order.symbol));
        message.set(new OrderQty(order.orderQty));
        message.set(new Price(order.price));
        message.set(new TimeInForce(order.timeInForce));
        return message.toString().getBytes(StandardCharsets.ISO_8859_1);
    }
    // typed: end

    /** A sum in which every value is. */
    private static double weight(Order order) {
        return order.clOrdID.length() + order.symbol.length() + order.side
                + order.transactTime.getNano() + order.orderQty + order.ordType + order.price
                + order.timeInForce;
    }

    private static void typed(String file) throws Exception {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        Order order = read(bytes);
        byte[] built = build(order, 1234, order.transactTime);
        System.out.println("message " + new String(built, StandardCharsets.ISO_8859_1));
        say("read", timed(() -> weight(read(bytes))));
        say("build", timed(() -> (double) build(order, 1234, order.transactTime).length));
    }

    public static void main(String[] words) throws Exception {
        String what = words[0];
        if (what.equals("parse")) {
            parse(words[1], words.length > 2 ? words[2] : null);
            return;
        }
        if (what.equals("typed")) {
            typed(words[1]);
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
