// A counterparty on QuickFIX/J: the engine runs the session, stdin controls the messages sent.
// Arguments, output and commands are those of peer.cpp.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.LocalDateTime;
import java.util.HashSet;
import java.util.Set;
import quickfix.*;
import quickfix.field.*;

public final class Peer implements Application {
    private final boolean echoes;
    private final Set<String> known = new HashSet<>();
    private volatile String password;

    private Peer(boolean echoes) {
        this.echoes = echoes;
    }

    private static synchronized void say(String line) {
        System.out.println(line.replace('\001', '|'));
        System.out.flush();
    }

    private static boolean before42(SessionID id) {
        return id.getBeginString().equals("FIX.4.0") || id.getBeginString().equals("FIX.4.1");
    }

    @Override
    public void onCreate(SessionID id) {}

    @Override
    public void onLogon(SessionID id) {
        say("logon");
    }

    @Override
    public void onLogout(SessionID id) {
        synchronized (known) {
            known.removeIf(order -> order.startsWith(id + "\001"));
        }
        say("logout");
    }

    @Override
    public void toAdmin(Message message, SessionID id) {
        String secret = password;
        if (secret != null && isLogon(message)) {
            message.setString(Username.FIELD, "me");
            message.setString(Password.FIELD, secret);
        }
        say("out " + message);
    }

    @Override
    public void toApp(Message message, SessionID id) {
        say("out " + message);
    }

    @Override
    public void fromAdmin(Message message, SessionID id) {
        say("in " + message);
    }

    @Override
    public void fromApp(Message message, SessionID id)
            throws FieldNotFound, UnsupportedMessageType {
        say("in " + message);
        if (!echoes) {
            return;
        }
        String type = message.getHeader().getString(MsgType.FIELD);
        boolean isOrder = type.equals("D");
        if (!isOrder && !type.equals("C") && (!type.equals("d") || before42(id))) {
            throw new UnsupportedMessageType();
        }
        if (isOrder && seenAgain(message, id)) {
            return;
        }
        send((Message) message.clone(), id);
    }

    /** Handles a possible resend of an order that came before. */
    private boolean seenAgain(Message message, SessionID id) throws FieldNotFound {
        boolean again = message.getHeader().isSetField(PossResend.FIELD)
                && message.getHeader().getBoolean(PossResend.FIELD);
        synchronized (known) {
            return !known.add(id + "\001" + message.getString(ClOrdID.FIELD)) && again;
        }
    }

    private static boolean isLogon(Message message) {
        try {
            return message.getHeader().getString(MsgType.FIELD).equals(MsgType.LOGON);
        } catch (FieldNotFound error) {
            return false;
        }
    }

    private static void send(Message message, SessionID id) {
        try {
            Session.sendToTarget(message, id);
        } catch (SessionNotFound error) {
            say("error: " + error);
        }
    }

    private static void order(SessionID id, String order) {
        Message message = new Message();
        message.getHeader().setString(MsgType.FIELD, "D");
        message.setString(ClOrdID.FIELD, order);
        message.setString(HandlInst.FIELD, "3");
        message.setString(Symbol.FIELD, "INTC");
        message.setString(Side.FIELD, "1");
        message.setString(OrderQty.FIELD, "100");
        message.setString(OrdType.FIELD, "1");
        if (!before42(id)) {
            message.setUtcTimeStamp(TransactTime.FIELD, LocalDateTime.now(java.time.ZoneOffset.UTC));
        }
        send(message, id);
    }

    /** Returns a message of this body, `|` for SOH, parsed by the session's dictionaries. */
    private static Message parsed(Session session, SessionID id, String text) throws Exception {
        String body = text.replace('|', '\001');
        String front = "8=" + id.getBeginString() + "\0019=" + body.length() + "\001" + body;
        int sum = 0;
        for (char one : front.toCharArray()) {
            sum += one;
        }
        return MessageUtils.parse(session, front + String.format("10=%03d\001", sum % 256));
    }

    /** Executes the commands on stdin for the one session of an initiator, or the first. */
    private void obey(SessionID id) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Session session = Session.lookupSession(id);
            String[] words = line.split(" ");
            switch (words[0]) {
                case "order":
                    order(id, words[1]);
                    break;
                case "send":
                    send(parsed(session, id, line.substring(5)), id);
                    break;
                case "next-sender":
                    session.setNextSenderMsgSeqNum(Integer.parseInt(words[1]));
                    break;
                case "password":
                    password = words[1];
                    break;
                case "logout":
                    session.logout();
                    break;
                case "logon":
                    session.logon();
                    break;
                case "reset":
                    session.reset();
                    break;
                default:
                    say("error: unknown command " + line);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 2) {
            System.err.println("usage: Peer acceptor|initiator SETTINGS");
            System.exit(2);
        }
        boolean acceptor = args[0].equals("acceptor");
        SessionSettings settings = new SessionSettings(args[1]);
        MessageStoreFactory store = settings.getDefaultProperties().containsKey("FileStorePath")
                ? new FileStoreFactory(settings)
                : new MemoryStoreFactory();
        Peer peer = new Peer(acceptor);
        MessageFactory messages = new DefaultMessageFactory();
        LogFactory log = new SLF4JLogFactory(settings);
        SessionID id = settings.sectionIterator().next();
        if (acceptor) {
            SocketAcceptor engine = new SocketAcceptor(peer, store, settings, log, messages);
            engine.start();
            peer.obey(id);
            engine.stop();
        } else {
            SocketInitiator engine = new SocketInitiator(peer, store, settings, log, messages);
            engine.start();
            peer.obey(id);
            engine.stop();
        }
        System.exit(0);
    }
}
