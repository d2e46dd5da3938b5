// NATS as a peer of the benchmarks: the server alone, on a port that the kernel chooses, until
// stdin ends.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go nats.Start()
	if !nats.ReadyForConnections(10 * time.Second) {
		fmt.Fprintln(os.Stderr, "not ready after ten seconds")
		os.Exit(1)
	}
	io.Copy(io.Discard, os.Stdin)
}
