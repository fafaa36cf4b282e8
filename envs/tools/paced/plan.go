package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"loadstone/tools/connection"
	"loadstone/tools/redact"
)

// most is the limit of the number of generators times connections.
const most = 1000

// plan is what one process sends. Draw has the possible values of headers, one of which is drawn for each request. Of is
// the number of generators that share the stages; this process is generator Part, from 0, and with Step also generators
// Part + Step, Part + 2 Step, ... Each generator sends over this number of Connections in turn; 0: over as many as it
// needs, preferring the one that became idle last.
type plan struct {
	Method      string              `json:"method"`
	URL         string              `json:"url"`
	Header      http.Header         `json:"header"`
	Body        []byte              `json:"body"`
	Draw        map[string][]string `json:"draw"`
	Stages      []stage             `json:"stages"`
	Part        uint64              `json:"part"`
	Of          uint64              `json:"of"`
	Step        uint64              `json:"step"`
	Connections uint64              `json:"connections"`
	Connection  connection.Settings `json:"connection"`
	Redact      redact.Settings     `json:"redact"`
}

// attack is a plan with open files. Each connection of each generator has its own schedule, as if it were a separate
// generator.
type attack struct {
	planned plan
	clocks  []*schedule
	begin   time.Time  // the agreed start; zero: when send is called
	files   [2]*output // 0: all other stages, 1: the measured stage
	options []func(*vegeta.Attacker)
	log     *connection.Log
	hide    *redact.Redactor
}

func newAttack(planned plan, measured, others string) (*attack, error) {
	for name, values := range planned.Draw {
		if len(values) == 0 {
			return nil, fmt.Errorf("no value of the header %s", name)
		}
	}
	of, connections := max(planned.Of, 1), max(planned.Connections, 1)
	if of > most || connections > most/of || planned.Step > of {
		return nil, fmt.Errorf("%d generators of %d connections, every %dth: out of range", of, connections, planned.Step)
	}
	if planned.Part >= of {
		return nil, fmt.Errorf("there is no generator %d of %d: they count from 0", planned.Part, of)
	}
	options, log, err := planned.Connection.Options(planned.URL)
	if err != nil {
		return nil, err
	}
	hide, err := redact.New(planned.Redact)
	if err != nil {
		return nil, err
	}
	it := &attack{planned: planned, options: options, log: log, hide: hide}
	step := planned.Step
	if step == 0 {
		step = of
	}
	for part := planned.Part; part < of; part += step {
		for i := range connections {
			clock, err := newSchedule(planned.Stages, part+i*of, of*connections)
			if err != nil {
				return nil, err
			}
			it.clocks = append(it.clocks, clock)
		}
	}
	for i, name := range []string{others, measured} {
		var err error
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

// errMissed: the generator was not ready at the agreed start.
type errMissed struct{ by time.Duration }

func (e errMissed) Error() string {
	return fmt.Sprintf("the agreed start was missed: it was %s ago", e.by.Round(time.Microsecond))
}

// agree sets the start, a time of this machine's clock in the future.
func (a *attack) agree(unixNanoseconds int64) error {
	now := time.Now()
	wait := time.Duration(unixNanoseconds - now.UnixNano())
	if wait <= 0 {
		return errMissed{-wait}
	}
	a.begin = now.Add(wait) // on the monotonic clock, which is not affected when the wall clock is set
	return nil
}

// sent is a result and the schedule of its request.
type sent struct {
	clock  *schedule
	result *vegeta.Result
}

// send sends all requests and writes the results. A value from stop ends it without the requests in flight.
func (a *attack) send(timeout time.Duration, stop <-chan os.Signal) error {
	results := a.start(timeout)
	for written := uint64(0); ; {
		select {
		case s := <-stop:
			return fmt.Errorf("stopped by the signal %q after %d of %d requests", s, written, a.total())
		case each, more := <-results:
			if !more {
				return a.check(written)
			}
			file, seq := each.clock.place(each.result.Seq)
			// Set afterwards, because vegeta sends the name of an attack to the target.
			each.result.Seq, each.result.Attack = seq, a.name(each.clock)
			a.hide.Result(each.result)
			if err := a.files[file].encode(each.result); err != nil {
				return err
			}
			written++
		}
	}
}

// start starts an attacker with its own connections for each schedule.
func (a *attack) start(timeout time.Duration) <-chan sent {
	if a.begin.IsZero() {
		a.begin = time.Now()
	}
	results, senders := make(chan sent), sync.WaitGroup{}
	workers := vegeta.Workers(uint64(max(1, vegeta.DefaultWorkers/len(a.clocks))))
	options := append(slices.Clone(a.options), vegeta.Timeout(timeout), workers)
	for _, clock := range a.clocks {
		clock.begin = a.begin
		attacker := vegeta.NewAttacker(options...)
		senders.Add(1)
		go func() {
			defer senders.Done()
			for result := range attacker.Attack(a.planned.targeter(), clock, 0, "") {
				results <- sent{clock, result}
			}
		}()
	}
	go func() {
		senders.Wait()
		close(results)
	}()
	return results
}

// name is the name of the generator of a schedule; a single generator has none.
func (a *attack) name(clock *schedule) string {
	if a.planned.Of < 2 {
		return ""
	}
	return fmt.Sprintf("generator-%d", clock.part%a.planned.Of)
}

func (a *attack) total() (requests uint64) {
	for _, clock := range a.clocks {
		requests += clock.total
	}
	return requests
}

// check returns an error unless all requests were sent. A single generator that could not keep up is no error; with
// several, missing requests cannot be distinguished from requests lost by one of them.
func (a *attack) check(written uint64) error {
	if total := a.total(); written != total {
		late := slices.ContainsFunc(a.clocks, func(clock *schedule) bool { return clock.gaveUp })
		why := ""
		if late {
			why = "could not keep up: "
		}
		message := fmt.Sprintf("%ssent %d of %d requests", why, written, total)
		if !late || a.planned.Of > 1 {
			return errors.New(message)
		}
		fmt.Fprintln(os.Stderr, "paced:", message)
	}
	return nil
}

// targeter returns the target, with header values drawn anew for each request.
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
