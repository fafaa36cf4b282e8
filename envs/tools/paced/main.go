// Paced sends requests on a schedule whose rate changes in stages, and writes the results in the format of
// "vegeta attack", for "vegeta encode" and "vegeta report". Header values can be drawn at random for each request.
//
//	paced -measured test.bin -others warmups.bin -negotiated negotiated.json < plan.json
//	paced -agree -measured test.bin -others warmups.bin
//	LOADSTONE_TOKEN=... paced -listen :8900 -folder /tmp
//
// The measured stage has one file, all other stages have another; both number their requests from 0. Request n of a
// stage is due when the integral of the rate since the start of the stage is n. If several generators share a plan, each
// of k sends every k-th request, at the time at which a single generator would send it; together, their files are those
// of a single generator. The exit status is zero only if every request was sent and written.
//
// With -agree, it prints "ready" after reading the plan, and then reads the start time. With -listen, it does the same
// over HTTP (serve.go).
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

// start is the start time, read once all generators are ready: nanoseconds since 1970, by this machine's clock.
type start struct {
	Nanoseconds int64 `json:"start"`
}

func main() {
	timeout := flag.Duration("timeout", vegeta.DefaultTimeout, "timeout of a request")
	measured := flag.String("measured", "", "the file for requests of the measured stage")
	others := flag.String("others", "", "the file for requests of all other stages")
	negotiated := flag.String("negotiated", "", "the file for what TLS negotiated")
	redacted := flag.String("redacted", "", "the file for what was removed from results")
	agree := flag.Bool("agree", false, "print \"ready\" after reading the plan, then read the start time")
	listen := flag.String("listen", "", "address for control over HTTP")
	folder := flag.String("folder", os.TempDir(), "with -listen: folder for results")
	tls := flag.String("tls", "", "with -listen: folder of ca.pem, cert.pem and key.pem")
	patience := flag.Duration("patience", time.Minute, "with -listen: exit after this time without a request")
	flag.Parse()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var err error
	switch {
	case flag.NArg() != 0 || (*listen == "") != (*measured != "" && *others != ""):
		err = errors.New("usage: paced [-timeout 30s] [-agree] -measured FILE -others FILE < plan.json, or paced -listen ADDRESS")
	case *listen != "":
		err = serve(*listen, *folder, *tls, *patience, signals)
	default:
		err = run(*timeout, *measured, *others, *negotiated, *redacted, *agree, signals)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "paced:", err)
		os.Exit(1)
	}
}

func run(timeout time.Duration, measured, others, negotiated, redacted string, agree bool, signals <-chan os.Signal) (err error) {
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
			return fmt.Errorf("no start time: %w", err)
		}
		if err = it.agree(at.Nanoseconds); err != nil {
			return err
		}
	}
	return errors.Join(it.send(timeout, signals), it.log.Write(negotiated), it.hide.Write(redacted))
}
