// OpenFAST as a peer of the benchmarks.
//
//     OpenFast TEMPLATES PACKETS   decodes the packets again and again; prints "sum MESSAGES VALUES"
//                                  of one pass, then "decoded NANOSECONDS", of a message
//
// A packet is its length (four bytes, little-endian) and its bytes.

import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.openfast.Context;
import org.openfast.DecimalValue;
import org.openfast.FieldValue;
import org.openfast.GroupValue;
import org.openfast.ScalarValue;
import org.openfast.SequenceValue;
import org.openfast.StringValue;
import org.openfast.codec.FastDecoder;
import org.openfast.template.loader.XMLMessageTemplateLoader;

public final class OpenFast {
    private static final int PASSES = 40;

    private final Packets packets;
    private final FastDecoder decoder;
    private long messages;
    private long values;

    private OpenFast(String templates, String packets) throws Exception {
        XMLMessageTemplateLoader loader = new XMLMessageTemplateLoader();
        loader.setLoadTemplateIdFromAuxId(true);
        try (InputStream file = new FileInputStream(templates)) {
            loader.load(file);
        }
        Context context = new Context();
        context.setTemplateRegistry(loader.getTemplateRegistry());
        this.packets = new Packets(Files.readAllBytes(Path.of(packets)));
        decoder = new FastDecoder(context, this.packets);
    }

    private void pass() {
        messages = 0;
        values = 0;
        packets.rewind();
        while (packets.next()) {
            decoder.reset();
            while (packets.isInPacket()) {
                // Its first field is the number of the template.
                add(decoder.readMessage(), 1);
                messages++;
            }
        }
    }

    private void add(GroupValue group, int from) {
        for (int i = from; i < group.getFieldCount(); i++) {
            FieldValue value = group.getValue(i);
            if (value instanceof StringValue) {
                values += ((StringValue) value).value.length();
            } else if (value instanceof DecimalValue) {
                values += ((DecimalValue) value).mantissa + ((DecimalValue) value).exponent;
            } else if (value instanceof ScalarValue) {
                values += ((ScalarValue) value).toLong();
            } else if (value instanceof SequenceValue) {
                for (GroupValue entry : ((SequenceValue) value).getValues()) {
                    add(entry, 0);
                }
            }
        }
    }

    /// The bytes of a file, packet by packet, without the lock of ByteArrayInputStream.
    private static final class Packets extends InputStream {
        private final byte[] bytes;
        private final ByteBuffer lengths;
        private int at;
        private int end;

        Packets(byte[] bytes) {
            this.bytes = bytes;
            lengths = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        }

        void rewind() {
            at = 0;
            end = 0;
        }

        boolean next() {
            if (end == bytes.length) {
                return false;
            }
            at = end + 4;
            end = at + lengths.getInt(end);
            return true;
        }

        boolean isInPacket() {
            return at < end;
        }

        @Override
        public int read() {
            return at < end ? bytes[at++] & 0xff : -1;
        }
    }

    public static void main(String[] words) throws Exception {
        OpenFast peer = new OpenFast(words[0], words[1]);
        long[] took = new long[PASSES];
        for (int pass = 0; pass < PASSES; pass++) {
            long began = System.nanoTime();
            peer.pass();
            took[pass] = (System.nanoTime() - began) / peer.messages;
        }
        System.out.println("sum " + peer.messages + " " + Long.toUnsignedString(peer.values));
        // The first half warms up.
        long[] warm = Arrays.copyOfRange(took, PASSES / 2, PASSES);
        Arrays.sort(warm);
        System.out.println("decoded " + warm[warm.length / 2]);
    }
}
