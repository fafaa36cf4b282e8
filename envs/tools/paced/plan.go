package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// plan is what one generator is to send. Draw gives the values of a header from which each request takes one. Of
// several generators (Of) that share the stages, this one is number Part, from 0. Connections is over how many it sends
// in turn; 0: over as many as it needs, the one that was free last first.
type plan struct {
	Method      string              `json:"method"`
	URL         string              `json:"url"`
	Header      http.Header         `json:"header"`
	Body        []byte              `json:"body"`
	Draw        map[string][]string `json:"draw"`
	Stages      []stage             `json:"stages"`
	Part        uint64              `json:"part"`
	Of          uint64              `json:"of"`
	Connections int                 `json:"connections"`
}

// attack is a plan whose files are open.
type attack struct {
	planned plan
	clock   *schedule
	files   [2]*output // 0: of all other stages, 1: of the measured one
}

func newAttack(planned plan, measured, others string) (*attack, error) {
	for name, values := range planned.Draw {
		if len(values) == 0 {
			return nil, fmt.Errorf("no value of the header %s", name)
		}
	}
	if planned.Connections < 0 {
		return nil, errors.New("a number of connections below zero")
	}
	clock, err := newSchedule(planned.Stages, planned.Part, planned.Of)
	if err != nil {
		return nil, err
	}
	it := &attack{planned: planned, clock: clock}
	for i, name := range []string{others, measured} {
		if it.files[i], err = create(name); err != nil {
			return nil, errors.Join(err, it.close())
		}
	}
	return it, nil
}

func (a *attack) close() error {
	var failures []error
	for _, file := range a.files {
		if file != nil {
			failures = append(failures, file.close())
		}
	}
	return errors.Join(failures...)
}

// errMissed is that of a generator that was not ready at the agreed start.
type errMissed struct{ by time.Duration }

func (e errMissed) Error() string {
	return fmt.Sprintf("the agreed start was missed: it was %s ago", e.by.Round(time.Microsecond))
}

// agree fixes the start to a moment of this machine's clock, which must lie ahead.
func (a *attack) agree(unixNanoseconds int64) error {
	now := time.Now()
	wait := time.Duration(unixNanoseconds - now.UnixNano())
	if wait <= 0 {
		return errMissed{-wait}
	}
	a.clock.begin = now.Add(wait) // on the monotonic clock, so that nobody's setting of the other one moves it
	return nil
}

// send sends all and writes it, until a value comes from stop, which leaves the requests under way out.
func (a *attack) send(timeout time.Duration, stop <-chan os.Signal) error {
	client := &http.Client{Transport: newInTurn(max(1, a.planned.Connections))}
	redirects := vegeta.Redirects(vegeta.DefaultRedirects)
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Timeout(timeout), redirects)
	results := attacker.Attack(a.planned.targeter(), a.clock, 0, "")
	name := ""
	if a.planned.Of > 1 {
		name = fmt.Sprintf("generator-%d", a.planned.Part)
	}
	for written := uint64(0); ; {
		select {
		case s := <-stop:
			return fmt.Errorf("stopped by the signal %q after %d of %d requests", s, written, a.clock.total)
		case result, more := <-results:
			if !more {
				if written != a.clock.total {
					return fmt.Errorf("sent %d of %d requests", written, a.clock.total)
				}
				return nil
			}
			file, seq := a.clock.place(result.Seq)
			// Only now: a named attack would be told to the target.
			result.Seq, result.Attack = seq, name
			if err := a.files[file].encode(result); err != nil {
				return err
			}
			written++
		}
	}
}

// targeter gives the one target, each time with other values of the headers that are drawn.
func (p plan) targeter() vegeta.Targeter {
	return func(target *vegeta.Target) error {
		header := p.Header.Clone()
		if header == nil {
			header = http.Header{}
		}
		for name, values := range p.Draw {
			header[name] = []string{values[rand.IntN(len(values))]}
		}
		*target = vegeta.Target{Method: p.Method, URL: p.URL, Header: header, Body: p.Body}
		return nil
	}
}

// output is one file of results.
type output struct {
	file     *os.File
	buffered *bufio.Writer
	encode   vegeta.Encoder
}

func create(name string) (*output, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewWriter(file)
	return &output{file, buffered, vegeta.NewEncoder(buffered)}, nil
}

func (o *output) close() error { return errors.Join(o.buffered.Flush(), o.file.Close()) }
