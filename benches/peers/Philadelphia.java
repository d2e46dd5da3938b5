// Philadelphia as a peer of the benchmarks.
//
//     Philadelphia answer       answers each order of one client with an ExecutionReport; the kernel
//                               picks the port
//     Philadelphia parse FILE   as quickfix.cpp
//
// One thread reads without pause, as the library's own test acceptor does.

import com.paritytrading.philadelphia.*;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

public final class Philadelphia implements FIXMessageListener, FIXConnectionStatusListener {
    private static final int CL_ORD_ID = 11;
    private static final int ORDER_QTY = 38;
    private static final int SIDE = 54;
    private static final int SYMBOL = 55;

    private final FIXConnection connection;
    private final FIXMessage report;
    private final FIXValue orderId;
    private final FIXValue execId;
    private final FIXValue clOrdId;
    private final FIXValue symbol;
    private final FIXValue side;
    private final FIXValue leavesQty;
    private long number;
    private boolean isOver;

    private Philadelphia(SocketChannel channel) {
        connection = new FIXConnection(channel, config(), this, this, System.currentTimeMillis());
        report = connection.create();
        connection.prepare(report, '8');
        orderId = report.addField(37);
        execId = report.addField(17);
        report.addField(150).setChar('0');
        report.addField(39).setChar('0');
        clOrdId = report.addField(CL_ORD_ID);
        symbol = report.addField(SYMBOL);
        side = report.addField(SIDE);
        leavesQty = report.addField(151);
        report.addField(14).setInt(0);
        report.addField(6).setInt(0);
    }

    private static FIXConfig config() {
        return FIXConfig.newBuilder()
                .setVersion(FIXVersion.FIX_4_4)
                .setSenderCompID("SERVER")
                .setTargetCompID("CLIENT")
                .setMaxFieldCount(64)
                .build();
    }

    @Override
    public void message(FIXMessage order) throws IOException {
        if (!order.getMsgType().contentEquals('D')) {
            return;
        }
        number++;
        orderId.setInt(number);
        execId.setInt(number);
        for (int i = 0; i < order.getFieldCount(); i++) {
            switch (order.tagAt(i)) {
                case CL_ORD_ID: clOrdId.set(order.valueAt(i)); break;
                case SYMBOL: symbol.set(order.valueAt(i)); break;
                case SIDE: side.set(order.valueAt(i)); break;
                case ORDER_QTY: leavesQty.set(order.valueAt(i)); break;
                default: break;
            }
        }
        connection.update(report);
        connection.send(report);
    }

    @Override
    public void close(FIXConnection connection, String message) {
        isOver = true;
    }

    @Override
    public void sequenceReset(FIXConnection connection) {}

    @Override
    public void tooLowMsgSeqNum(FIXConnection connection, long received, long expected) {}

    @Override
    public void reject(FIXConnection connection, FIXMessage message) {}

    @Override
    public void logon(FIXConnection connection, FIXMessage message) throws IOException {
        connection.sendLogon(true);
    }

    @Override
    public void logout(FIXConnection connection, FIXMessage message) throws IOException {
        connection.sendLogout();
        isOver = true;
    }

    private void run() throws IOException {
        for (int turn = 0; !isOver && connection.receive() >= 0; turn++) {
            if (turn % 1000 == 0) {
                connection.setCurrentTimeMillis(System.currentTimeMillis());
            }
        }
        connection.close();
    }

    private static void parse(String file) throws IOException {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length);
        buffer.put(bytes);
        long[] fields = new long[1];
        FIXConfig config = FIXConfig.newBuilder().setMaxFieldCount(64).build();
        FIXMessageParser parser =
                new FIXMessageParser(config, message -> fields[0] += message.getFieldCount());
        int batch = 20_000;
        long[] took = new long[200];
        for (int round = 0; round < took.length; round++) {
            long began = System.nanoTime();
            for (int i = 0; i < batch; i++) {
                buffer.flip();
                parser.parse(buffer);
            }
            took[round] = (System.nanoTime() - began) / batch;
        }
        if (fields[0] == 0) {
            throw new IllegalStateException("no fields");
        }
        // The first half warms up.
        long[] warm = Arrays.copyOfRange(took, took.length / 2, took.length);
        Arrays.sort(warm);
        System.out.println("parsed " + warm[warm.length / 2]);
    }

    public static void main(String[] words) throws IOException {
        if (words[0].equals("parse")) {
            parse(words[1]);
            return;
        }
        ServerSocketChannel port = ServerSocketChannel.open();
        port.bind(new InetSocketAddress("127.0.0.1", 0));
        SocketChannel channel = port.accept();
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        new Philadelphia(channel).run();
    }
}
