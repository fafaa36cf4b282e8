// Serial sends a number of requests one after another, each as soon as the previous one is answered, and writes the
// results in the format of "vegeta attack", for "vegeta encode" and "vegeta report".
//
//	serial -requests 100 -output run.bin < target.json
//
// The target is read from standard input in vegeta's JSON format. As in vegeta, the timestamp of a request is its start.
// The exit status is zero only if every request was sent and written.
package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

func main() {
	requests := flag.Uint64("requests", 0, "how many requests to send")
	timeout := flag.Duration("timeout", vegeta.DefaultTimeout, "how long to wait for one response")
	insecure := flag.Bool("insecure", false, "accept any TLS certificate")
	output := flag.String("output", "stdout", "the file to write")
	flag.Parse()

	if err := run(*requests, *timeout, *insecure, *output); err != nil {
		fmt.Fprintln(os.Stderr, "serial:", err)
		os.Exit(1)
	}
}

func run(requests uint64, timeout time.Duration, insecure bool, output string) (err error) {
	if requests == 0 || flag.NArg() != 0 {
		return errors.New("usage: serial -requests N [-timeout 30s] [-insecure] [-output FILE] < target.json")
	}
	target, err := readTarget(os.Stdin)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	out := os.Stdout
	if output != "stdout" {
		if out, err = os.Create(output); err != nil {
			return err
		}
	}
	buffered := bufio.NewWriter(out)
	defer func() {
		for _, finish := range []func() error{buffered.Flush, out.Close} {
			if failure := finish(); err == nil {
				err = failure
			}
		}
	}()

	attacker := vegeta.NewAttacker(
		vegeta.Workers(1),
		vegeta.MaxWorkers(1),
		vegeta.Timeout(timeout),
		vegeta.TLSConfig(&tls.Config{InsecureSkipVerify: insecure}),
		vegeta.HTTP2(true),
	)
	results := attacker.Attack(vegeta.NewStaticTargeter(target), pacer(requests), 0, "")
	return write(results, vegeta.NewEncoder(buffered), requests)
}

// pacer never waits, and stops after this number of hits. With one worker, a hit begins when the previous one has ended.
type pacer uint64

func (p pacer) Pace(_ time.Duration, hits uint64) (time.Duration, bool) { return 0, hits >= uint64(p) }

func (p pacer) Rate(time.Duration) float64 { return 0 }

// readTarget reads exactly one target. Vegeta's reader needs a line feed after it.
func readTarget(src io.Reader) (target vegeta.Target, err error) {
	targeter := vegeta.NewJSONTargeter(io.MultiReader(src, strings.NewReader("\n")), nil, nil)
	if err = targeter(&target); err != nil {
		return target, err
	}
	if err = targeter(&vegeta.Target{}); err != vegeta.ErrNoTargets {
		return target, errors.New("more than one target")
	}
	return target, nil
}

// write encodes all results. A signal ends it without the request in flight.
func write(results <-chan *vegeta.Result, encode vegeta.Encoder, requests uint64) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)

	for written := uint64(0); ; {
		select {
		case s := <-signals:
			return fmt.Errorf("stopped by the signal %q after %d of %d requests", s, written, requests)
		case result, more := <-results:
			if !more {
				if written != requests {
					return fmt.Errorf("sent %d of %d requests", written, requests)
				}
				return nil
			}
			if err := encode(result); err != nil {
				return err
			}
			written++
		}
	}
}
