// Aeron as a peer of the benchmarks, by IPC.
//
//     AeronIpc FOLDER ROLE SIZE WARM_UP COUNT DOMAIN    as cyclone.c, with FOLDER in shared memory
//
// ping and sink add up the words of a sample's bytes: a wrong sum ends the program, as a wrong
// number does.
//
// Publications are exclusive and samples are claimed in place; both ends poll without pause. The
// process that is started first has the media driver, whose only thread shares a processor with an
// end. A sample goes by IPC without the driver, but the driver alone moves the limit up to which a
// publication may write, half a term (2 MB) ahead of its reader, and clears what has been read. Its
// thread sleeps in between, as it has no processor of its own on which to spin: in the throughput
// too briefly for the publication to come to the limit, in round trips so long that it disturbs
// fewer than one in a hundred.

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

public final class AeronIpc {
    // The longest sample is one fragment.
    private static final String CHANNEL = "aeron:ipc?mtu=16k|term-length=4m";
    private static final int PING = 1;
    private static final int PONG = 2;
    private static final int FLOW = 3;
    private static final int FRAGMENTS = 64;
    // A pause takes some 160 us, with the slack of the kernel's timers. A reader would have to take
    // 13 GB/s to come half a term further meanwhile.
    private static final long FLOW_PAUSE_NANOS = 100_000;
    // Round trips of 8 KiB take 1 to 7 us. Those of 2 us come half a term further in 0.5 ms: fewer
    // than one in a hundred waits for the limit, or is disturbed.
    private static final long TRIP_PAUSE_NANOS = 1_000_000;

    private final Aeron aeron;
    private final int size;
    private final int warmUp;
    private final int count;
    private final BufferClaim claim = new BufferClaim();
    private final UnsafeBuffer sample;
    private final long payloadSum;
    private volatile boolean isOver;
    private long number;
    private long sent;
    private long began;

    private AeronIpc(Aeron aeron, int size, int warmUp, int count) {
        this.aeron = aeron;
        this.size = size;
        this.warmUp = warmUp;
        this.count = count;
        sample = new UnsafeBuffer(new byte[size]);
        for (int at = Long.BYTES; at < size; at++) {
            sample.putByte(at, (byte) (at % 251));
        }
        // Its number is 0.
        payloadSum = sumOf(sample, 0);
    }

    public static void main(String[] args) throws IOException {
        String folder = args[0];
        String role = args[1];
        int size = Integer.parseInt(args[2]);
        int warmUp = Integer.parseInt(args[3]);
        int count = Integer.parseInt(args[4]);
        boolean isFirst = role.equals("pong") || role.equals("sink");
        long pause = role.equals("sink") ? FLOW_PAUSE_NANOS : TRIP_PAUSE_NANOS;
        try (MediaDriver driver = isFirst ? driver(folder, pause) : null;
                Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(folder))) {
            AeronIpc ends = new AeronIpc(aeron, size, warmUp, count);
            switch (role) {
                case "pong" -> ends.pong();
                case "ping" -> ends.ping();
                case "sink" -> ends.sink();
                default -> ends.source();
            }
        }
    }

    private static MediaDriver driver(String folder, long pauseNanos) {
        MediaDriver driver = MediaDriver.launch(
                new MediaDriver.Context()
                        .aeronDirectoryName(folder)
                        .dirDeleteOnStart(true)
                        .dirDeleteOnShutdown(true)
                        .threadingMode(ThreadingMode.SHARED)
                        .sharedIdleStrategy(new SleepingIdleStrategy(pauseNanos)));
        // The driver removes its folder also after an interrupt, with which main does not return.
        Runtime.getRuntime().addShutdownHook(new Thread(driver::close));
        return driver;
    }

    private void pong() {
        ExclusivePublication out = aeron.addExclusivePublication(CHANNEL, PONG);
        Subscription in = aeron.addSubscription(CHANNEL, PING);
        FragmentHandler echo = (buffer, offset, length, header) -> send(out, buffer, offset);
        stopWithStdin();
        say("ready");
        while (!isOver) {
            if (in.poll(echo, FRAGMENTS) == 0) {
                Thread.onSpinWait();
            }
        }
    }

    private void ping() throws IOException {
        ExclusivePublication out = aeron.addExclusivePublication(CHANNEL, PING);
        Subscription in = aeron.addSubscription(CHANNEL, PONG);
        long[] nanos = new long[count];
        waitForMatch(out, in);
        FragmentHandler take =
                (buffer, offset, length, header) -> {
                    check(buffer, offset, length);
                    long came = System.nanoTime();
                    expect(buffer.getLong(offset));
                    if (number >= warmUp) {
                        nanos[(int) (number - warmUp)] = came - sent;
                    }
                    number++;
                };
        while (number < warmUp + count) {
            long awaited = number + 1;
            sample.putLong(0, number);
            sent = System.nanoTime();
            send(out, sample, 0);
            while (number < awaited) {
                if (in.poll(take, 1) == 0) {
                    Thread.onSpinWait();
                }
            }
        }
        Arrays.sort(nanos);
        say("p50 " + nanos[count / 2]);
        say("p99 " + nanos[(int) (count * 99L / 100)]);
        untilStdinEnds();
    }

    private void sink() throws IOException {
        Subscription in = aeron.addSubscription(CHANNEL, FLOW);
        FragmentHandler take =
                (buffer, offset, length, header) -> {
                    check(buffer, offset, length);
                    expect(buffer.getLong(offset));
                    if (number++ == warmUp) {
                        began = System.nanoTime();
                    }
                };
        say("ready");
        while (number < warmUp + count) {
            if (in.poll(take, FRAGMENTS) == 0) {
                Thread.onSpinWait();
            }
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        say("rate " + (count - 1) / seconds);
        untilStdinEnds();
    }

    private void source() throws IOException {
        ExclusivePublication out = aeron.addExclusivePublication(CHANNEL, FLOW);
        waitForMatch(out, null);
        for (long next = 0; next < warmUp + count; next++) {
            sample.putLong(0, next);
            send(out, sample, 0);
        }
        untilStdinEnds();
    }

    /** Waits for room, then copies a sample into the log. */
    private void send(ExclusivePublication out, DirectBuffer from, int offset) {
        while (out.tryClaim(size, claim) < 0) {
            if (out.isClosed() || isOver) {
                fail("the publication is closed");
            }
            Thread.onSpinWait();
        }
        MutableDirectBuffer to = claim.buffer();
        to.putBytes(claim.offset(), from, offset, size);
        claim.commit();
    }

    /** Reads a sample whole. */
    private void check(DirectBuffer buffer, int offset, int length) {
        long came = buffer.getLong(offset);
        if (length != size || sumOf(buffer, offset) != came + payloadSum) {
            fail("sample " + came + " has other bytes than were sent");
        }
    }

    /**
     * Adds up the words of a sample; their number is even. With two sums an addition does not wait
     * for the one before it, should the compiler not vectorize the loop.
     */
    private long sumOf(DirectBuffer buffer, int offset) {
        long even = 0;
        long odd = 0;
        int end = offset + size;
        for (int at = offset; at < end; at += 2 * Long.BYTES) {
            even += buffer.getLong(at);
            odd += buffer.getLong(at + Long.BYTES);
        }
        return even + odd;
    }

    private void expect(long came) {
        if (came != number) {
            fail("sample " + came + " in place of " + number);
        }
    }

    /** Waits until each end has the other one. */
    private static void waitForMatch(ExclusivePublication out, Subscription in) {
        while (!out.isConnected() || (in != null && !in.isConnected())) {
            pause(2);
        }
        pause(300);
    }

    private static void pause(long millis) {
        try {
            TimeUnit.MILLISECONDS.sleep(millis);
        } catch (InterruptedException interrupted) {
            fail("interrupted");
        }
    }

    private void stopWithStdin() {
        Thread thread =
                new Thread(
                        () -> {
                            try {
                                untilStdinEnds();
                            } catch (IOException error) {
                                fail(error.toString());
                            }
                            isOver = true;
                        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void untilStdinEnds() throws IOException {
        while (System.in.read() >= 0) {
            continue;
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void fail(String why) {
        System.err.println(why);
        System.exit(1);
    }
}
