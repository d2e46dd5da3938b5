// Artio as a peer of the benchmarks: answers each order of one client with an ExecutionReport.
//
//     Artio FOLDER   keeps its files in the folder; the kernel picks the port; ends when stdin ends
//
// As in Artio's own benchmark server, a media driver, an engine and a library share the process, talk
// through shared memory, and log no messages. The library owns each session from its start: it would
// miss the orders that come before it has asked the engine for a session. The codecs are those that
// Artio ships: its report has no ClOrdID(11), LeavesQty(151), CumQty(14) and AvgPx(6).

import static io.aeron.CommonContext.IPC_CHANNEL;
import static io.aeron.logbuffer.ControlledFragmentHandler.Action.ABORT;
import static io.aeron.logbuffer.ControlledFragmentHandler.Action.CONTINUE;

import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.ControlledFragmentHandler.Action;
import java.io.IOException;
import java.util.List;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import uk.co.real_logic.artio.CommonConfiguration;
import uk.co.real_logic.artio.ExecType;
import uk.co.real_logic.artio.OrdStatus;
import uk.co.real_logic.artio.Pressure;
import uk.co.real_logic.artio.builder.ExecutionReportEncoder;
import uk.co.real_logic.artio.decoder.NewOrderSingleDecoder;
import uk.co.real_logic.artio.engine.EngineConfiguration;
import uk.co.real_logic.artio.engine.FixEngine;
import uk.co.real_logic.artio.library.FixLibrary;
import uk.co.real_logic.artio.library.LibraryConfiguration;
import uk.co.real_logic.artio.library.OnMessageInfo;
import uk.co.real_logic.artio.library.SessionHandler;
import uk.co.real_logic.artio.messages.DisconnectReason;
import uk.co.real_logic.artio.messages.InitialAcceptedSessionOwner;
import uk.co.real_logic.artio.session.Session;
import uk.co.real_logic.artio.util.MutableAsciiBuffer;

public final class Artio implements SessionHandler {
    /// Whether stdin has ended.
    private static volatile boolean ended;

    private final MutableAsciiBuffer text = new MutableAsciiBuffer();
    private final NewOrderSingleDecoder order = new NewOrderSingleDecoder();
    private final ExecutionReportEncoder report = new ExecutionReportEncoder();
    private final byte[] digits = new byte[20];
    private final UnsafeBuffer number = new UnsafeBuffer(digits);
    private long came;

    private Artio() {
        report.execType(ExecType.NEW).ordStatus(OrdStatus.NEW);
    }

    @Override
    public Action onMessage(
            DirectBuffer buffer,
            int offset,
            int length,
            int libraryId,
            Session session,
            int sequenceIndex,
            long messageType,
            long timestampInNs,
            long position,
            OnMessageInfo info) {
        if (messageType != NewOrderSingleDecoder.MESSAGE_TYPE) {
            return CONTINUE;
        }
        text.wrap(buffer);
        order.reset();
        order.decode(text, offset, length);
        int count = number.putLongAscii(0, came + 1);
        report.orderID(digits, count).execID(digits, count).side(order.side());
        report.instrument().symbol(order.symbol(), order.symbolLength());
        if (Pressure.isBackPressured(session.trySend(report))) {
            return ABORT;
        }
        came++;
        return CONTINUE;
    }

    @Override
    public void onTimeout(int libraryId, Session session) {}

    @Override
    public void onSlowStatus(int libraryId, Session session, boolean hasBecomeSlow) {}

    @Override
    public Action onDisconnect(int libraryId, Session session, DisconnectReason reason) {
        return CONTINUE;
    }

    @Override
    public void onSessionStart(Session session) {}

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {}
        } catch (IOException error) {
            System.err.println(error);
        }
        ended = true;
    }

    public static void main(String[] words) {
        Thread end = new Thread(Artio::waitForEnd);
        end.setDaemon(true);
        end.start();
        String folder = words[0];
        MediaDriver.Context driver = new MediaDriver.Context()
                .aeronDirectoryName(folder + "/aeron")
                .dirDeleteOnStart(true)
                .threadingMode(ThreadingMode.SHARED);
        EngineConfiguration engine = new EngineConfiguration()
                .bindTo("localhost", 0)
                .libraryAeronChannel(IPC_CHANNEL)
                .logFileDir(folder + "/logs")
                .deleteLogFileDirOnStart(true)
                .initialAcceptedSessionOwner(InitialAcceptedSessionOwner.SOLE_LIBRARY)
                .monitoringFile(folder + "/engine")
                .logInboundMessages(false)
                .logOutboundMessages(false);
        engine.aeronContext().aeronDirectoryName(folder + "/aeron");
        LibraryConfiguration library = new LibraryConfiguration()
                .libraryAeronChannels(List.of(IPC_CHANNEL))
                .sessionAcquireHandler((session, info) -> new Artio());
        library.monitoringFile(folder + "/library");
        library.aeronContext().aeronDirectoryName(folder + "/aeron");
        IdleStrategy idle = CommonConfiguration.backoffIdleStrategy();
        try (MediaDriver running = MediaDriver.launch(driver);
                FixEngine acceptor = FixEngine.launch(engine);
                FixLibrary sessions = FixLibrary.connect(library)) {
            while (!ended) {
                idle.idle(sessions.poll(10));
            }
        }
    }
}
