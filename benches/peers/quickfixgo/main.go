// QuickFIX/Go as a peer of the benchmarks. Arguments and output are those of ../quickfix.cpp:
//
//	quickfixgo answer SETTINGS | parse FILE
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/quickfixgo/quickfix"
)

const (
	avgPx     = quickfix.Tag(6)
	clOrdID   = quickfix.Tag(11)
	cumQty    = quickfix.Tag(14)
	execID    = quickfix.Tag(17)
	msgType   = quickfix.Tag(35)
	orderID   = quickfix.Tag(37)
	orderQty  = quickfix.Tag(38)
	ordStatus = quickfix.Tag(39)
	side      = quickfix.Tag(54)
	symbol    = quickfix.Tag(55)
	execType  = quickfix.Tag(150)
	leavesQty = quickfix.Tag(151)
)

type peer struct{ number int }

func (*peer) OnCreate(quickfix.SessionID)                       {}
func (*peer) OnLogon(quickfix.SessionID)                        {}
func (*peer) OnLogout(quickfix.SessionID)                       {}
func (*peer) ToAdmin(*quickfix.Message, quickfix.SessionID)     {}
func (*peer) ToApp(*quickfix.Message, quickfix.SessionID) error { return nil }
func (*peer) FromAdmin(*quickfix.Message, quickfix.SessionID) quickfix.MessageRejectError {
	return nil
}

func (p *peer) FromApp(order *quickfix.Message, id quickfix.SessionID) quickfix.MessageRejectError {
	p.number++
	report := quickfix.NewMessage()
	report.Header.SetString(msgType, "8")
	report.Body.SetString(orderID, strconv.Itoa(p.number))
	report.Body.SetString(execID, strconv.Itoa(p.number))
	report.Body.SetString(execType, "0")
	report.Body.SetString(ordStatus, "0")
	for _, copied := range [][2]quickfix.Tag{
		{clOrdID, clOrdID}, {symbol, symbol}, {side, side}, {orderQty, leavesQty},
	} {
		value, err := order.Body.GetString(copied[0])
		if err != nil {
			return err
		}
		report.Body.SetString(copied[1], value)
	}
	report.Body.SetString(cumQty, "0")
	report.Body.SetString(avgPx, "0")
	if err := quickfix.SendToTarget(report, id); err != nil {
		return quickfix.NewMessageRejectError(err.Error(), 0, nil)
	}
	return nil
}

func answer(file string) error {
	text, err := os.Open(file)
	if err != nil {
		return err
	}
	settings, err := quickfix.ParseSettings(text)
	if err != nil {
		return err
	}
	acceptor, err := quickfix.NewAcceptor(
		&peer{}, quickfix.NewMemoryStoreFactory(), settings, quickfix.NewNullLogFactory())
	if err != nil {
		return err
	}
	if err := acceptor.Start(); err != nil {
		return err
	}
	for input := bufio.NewReader(os.Stdin); ; {
		if _, err := input.ReadByte(); err != nil {
			break
		}
	}
	acceptor.Stop()
	return nil
}

func parse(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const batch = 2000
	var took []int64
	length := 0
	for round := 0; round < 200; round++ {
		began := time.Now()
		for i := 0; i < batch; i++ {
			message := quickfix.NewMessage()
			if err := quickfix.ParseMessage(message, bytes.NewBuffer(text)); err != nil {
				return err
			}
			if message.Body.Has(symbol) {
				length++
			}
		}
		took = append(took, time.Since(began).Nanoseconds()/batch)
	}
	if length == 0 {
		return fmt.Errorf("no fields")
	}
	sort.Slice(took, func(a, b int) bool { return took[a] < took[b] })
	fmt.Println("parsed", took[len(took)/2])
	return nil
}

func main() {
	run := map[string]func(string) error{"answer": answer, "parse": parse}
	if len(os.Args) != 3 || run[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: quickfixgo answer|parse FILE")
		os.Exit(2)
	}
	if err := run[os.Args[1]](os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
