// Serial sends a number of requests one after another, each as soon as the previous one is answered, and writes the
// results in the format of "vegeta attack", for "vegeta encode" and "vegeta report".
//
//	serial -requests 100 -output run.bin < target.json
//
// The request is read from standard input as JSON. As in vegeta, its timestamp is its start. The exit status is zero only
// if every request was sent and written.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"loadstone/tools/connection"
	"loadstone/tools/redact"
)

// request is what is sent each time, and how it is sent.
type request struct {
	vegeta.Target
	Connection connection.Settings `json:"connection"`
	Redact     redact.Settings     `json:"redact"`
}

func main() {
	requests := flag.Uint64("requests", 0, "how many requests to send")
	timeout := flag.Duration("timeout", vegeta.DefaultTimeout, "how long to wait for one response")
	output := flag.String("output", "stdout", "the file to write")
	negotiated := flag.String("negotiated", "", "the file for what TLS negotiated")
	redacted := flag.String("redacted", "", "the file for what was removed from results")
	flag.Parse()

	if err := run(*requests, *timeout, *output, *negotiated, *redacted); err != nil {
		fmt.Fprintln(os.Stderr, "serial:", err)
		os.Exit(1)
	}
}

func run(requests uint64, timeout time.Duration, output, negotiated, redacted string) (err error) {
	if requests == 0 || flag.NArg() != 0 {
		return errors.New("usage: serial -requests N [-timeout 30s] [-output FILE] [-negotiated FILE] < target.json")
	}
	var given request
	input := json.NewDecoder(os.Stdin)
	if err = input.Decode(&given); errors.Is(err, io.EOF) {
		err = errors.New("no targets")
	} else if err == nil && input.More() {
		err = errors.New("more than one target")
	}
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	if given.URL == "" {
		return errors.New("standard input: no url")
	}
	options, log, err := given.Connection.Options(given.URL)
	if err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	hide, err := redact.New(given.Redact)
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

	options = append(options, vegeta.Workers(1), vegeta.MaxWorkers(1), vegeta.Timeout(timeout))
	results := vegeta.NewAttacker(options...).Attack(vegeta.NewStaticTargeter(given.Target), pacer(requests), 0, "")
	return errors.Join(write(results, vegeta.NewEncoder(buffered), hide, requests), log.Write(negotiated), hide.Write(redacted))
}

// pacer never waits, and stops after this number of hits. With one worker, a hit begins when the previous one has ended.
type pacer uint64

func (p pacer) Pace(_ time.Duration, hits uint64) (time.Duration, bool) { return 0, hits >= uint64(p) }

func (p pacer) Rate(time.Duration) float64 { return 0 }

// write encodes all results. A signal ends it without the request in flight.
func write(results <-chan *vegeta.Result, encode vegeta.Encoder, hide *redact.Redactor, requests uint64) error {
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
			hide.Result(result)
			if err := encode(result); err != nil {
				return err
			}
			written++
		}
	}
}
