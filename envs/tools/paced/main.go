// Paced sends requests on a clock whose rate changes in stages, and writes them in the format of "vegeta attack", so
// that "vegeta encode" and "vegeta report" read the result. Headers may be drawn at random for each request.
//
//	paced -measured test.bin -others warmups.bin -negotiated negotiated.json < plan.json
//	paced -agree -measured test.bin -others warmups.bin
//	LOADSTONE_TOKEN=... paced -listen :8900 -folder /tmp
//
// Requests of the measured stage and of all others go to a file each, numbered from 0 in each. Request n of a stage is
// due when the integral of its rate from the stage's start is n. Of several generators that share a plan each sends
// every so many-th request, when a single one would send it; their files together are those of a single one. The exit
// status is zero only if every request was sent and written.
//
// With -agree it says "ready" when it has read its plan, and then reads at which moment it is to start. With -listen
// it does all that over HTTP, see serve.go.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// start is what is read once all generators are ready: nanoseconds of this machine's clock since 1970.
type start struct {
	Nanoseconds int64 `json:"start"`
}

func main() {
	timeout := flag.Duration("timeout", vegeta.DefaultTimeout, "how long to wait for one response")
	measured := flag.String("measured", "", "the file for requests of the measured stage")
	others := flag.String("others", "", "the file for requests of all other stages")
	negotiated := flag.String("negotiated", "", "the file for what TLS negotiated")
	agree := flag.Bool("agree", false, "say when the plan is read, and read when to start")
	listen := flag.String("listen", "", "the address at which to be told over HTTP what to do")
	folder := flag.String("folder", os.TempDir(), "with -listen: where results are kept")
	patience := flag.Duration("patience", time.Minute, "with -listen: end when nobody has asked anything for so long")
	flag.Parse()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case flag.NArg() != 0 || (*listen == "") != (*measured != "" && *others != ""):
		err = errors.New("usage: paced [-timeout 30s] [-agree] -measured FILE -others FILE < plan.json, or paced -listen ADDRESS")
	case *listen != "":
		err = serve(*listen, *folder, *patience, signals)
	default:
		err = run(*timeout, *measured, *others, *negotiated, *agree, signals)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "paced:", err)
		os.Exit(1)
	}
}

func run(timeout time.Duration, measured, others, negotiated string, agree bool, signals <-chan os.Signal) (err error) {
	input := json.NewDecoder(os.Stdin)
	var planned plan
	if err = input.Decode(&planned); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	it, err := newAttack(planned, measured, others)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	defer func() {
		if failure := it.close(); err == nil {
			err = failure
		}
	}()
	if agree {
		fmt.Println("ready")
		var at start
		if err = input.Decode(&at); err != nil {
			return fmt.Errorf("nobody said when to start: %w", err)
		}
		if err = it.agree(at.Nanoseconds); err != nil {
			return err
		}
	}
	return errors.Join(it.send(timeout, signals), it.log.Write(negotiated))
}
