package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"loadstone/tools/connection"
)

// What a generator that listens does now.
const (
	waiting = "waiting" // for its plan
	planned = "planned" // and waiting for the moment of its start
	sending = "sending"
	done    = "done" // its results can be fetched
	failed  = "failed"
)

// held is a compressed file of results.
type held struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// status is what GET /status says. Now is this machine's clock, for the comparison of clocks.
type status struct {
	Now   int64           `json:"now"`
	State string          `json:"state"`
	Error string          `json:"error,omitempty"`
	Files map[string]held `json:"files,omitempty"`

	Negotiated []connection.Entry `json:"negotiated,omitempty"`
}

// order is what POST /plan brings.
type order struct {
	plan
	Timeout int64 `json:"timeout"` // nanoseconds
}

// agent is a generator that is told over HTTP what to do, once. Everything asks for the header X-Loadstone-Token.
//
//	GET  /status           what it does, and its clock
//	POST /plan             what to send
//	POST /start            when: a moment of its own clock, which must lie ahead
//	GET  /measured /others the results, compressed by gzip; parts of them by the header Range
//	POST /end              it may go
type agent struct {
	token  string
	folder string
	stop   chan os.Signal

	mutex   sync.Mutex
	status  status
	attack  *attack
	given   []byte // its plan as it came
	timeout time.Duration
	told    int64 // when to start
	asked   time.Time
	ended   chan struct{}
}

// serve answers until POST /end. It is an error to be asked nothing for longer than patience, also while it sends: so
// a generator ends by itself when whoever started it is gone.
func serve(address, folder string, patience time.Duration, signals chan os.Signal) error {
	token := os.Getenv("LOADSTONE_TOKEN")
	if token == "" {
		return errors.New("LOADSTONE_TOKEN is not set")
	}
	it := &agent{token: token, folder: folder, stop: make(chan os.Signal, 1), asked: time.Now(), ended: make(chan struct{})}
	it.status.State = waiting
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: it.handler(), ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	look := time.NewTicker(max(patience/20, time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-it.ended:
			return nil
		case s := <-signals:
			it.stop <- s
			return fmt.Errorf("stopped by the signal %q", s)
		case <-look.C:
			it.mutex.Lock()
			silent := time.Since(it.asked)
			it.mutex.Unlock()
			if silent > patience {
				return fmt.Errorf("nobody has asked anything for %s", silent.Round(time.Second))
			}
		}
	}
}

func (a *agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", a.tell)
	mux.HandleFunc("POST /plan", a.plan)
	mux.HandleFunc("POST /start", a.start)
	mux.HandleFunc("POST /end", a.end)
	for _, name := range []string{"measured", "others"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			http.ServeFile(w, r, a.path(name)+".gz")
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Loadstone-Token")), []byte(a.token)) != 1 {
			http.Error(w, "not for you", http.StatusForbidden)
			return
		}
		a.mutex.Lock()
		a.asked = time.Now()
		a.mutex.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func (a *agent) path(name string) string { return filepath.Join(a.folder, name) }

func (a *agent) tell(w http.ResponseWriter, _ *http.Request) {
	a.mutex.Lock()
	said := a.status
	a.mutex.Unlock()
	said.Now = time.Now().UnixNano()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(said)
}

func (a *agent) plan(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var given order
	content, err := io.ReadAll(r.Body)
	if err == nil && a.status.State == planned && bytes.Equal(content, a.given) { // again, for the answer was lost
		_, _ = io.WriteString(w, "{}")
		return
	}
	if a.status.State != waiting {
		http.Error(w, "there is a plan already", http.StatusConflict)
		return
	}
	if err == nil {
		err = json.Unmarshal(content, &given)
	}
	if err == nil {
		a.given = content
		a.attack, err = newAttack(given.plan, a.path("measured"), a.path("others"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	a.timeout, a.status.State = time.Duration(given.Timeout), planned
	_, _ = io.WriteString(w, "{}")
}

func (a *agent) start(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var at start
	err := json.NewDecoder(r.Body).Decode(&at)
	if err == nil && a.told != 0 && a.told == at.Nanoseconds { // again, for the answer was lost
		_, _ = io.WriteString(w, "{}")
		return
	}
	if err != nil || a.status.State != planned {
		http.Error(w, "no plan, or no start", http.StatusUnprocessableEntity)
		return
	}
	if err := a.attack.agree(at.Nanoseconds); err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	a.status.State, a.told = sending, at.Nanoseconds
	go a.send()
	_, _ = io.WriteString(w, "{}")
}

// send sends all, then compresses it: while requests are sent nothing else is to use the machine.
func (a *agent) send() {
	err := errors.Join(a.attack.send(a.timeout, a.stop), a.attack.close())
	files := map[string]held{}
	for _, name := range []string{"measured", "others"} {
		if err == nil {
			files[name], err = compress(a.path(name))
		}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err != nil {
		a.status.State, a.status.Error = failed, err.Error()
		return
	}
	a.status.State, a.status.Files, a.status.Negotiated = done, files, a.attack.log.Entries()
}

func (a *agent) end(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "{}")
	a.mutex.Lock()
	defer a.mutex.Unlock()
	select {
	case <-a.ended:
	default:
		close(a.ended)
	}
}

// compress makes file.gz of a file, which is removed.
func compress(name string) (made held, err error) {
	source, err := os.Open(name)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, source.Close(), os.Remove(name)) }()
	output, err := os.Create(name + ".gz")
	if err != nil {
		return made, err
	}
	digest := sha256.New()
	packed, err := gzip.NewWriterLevel(io.MultiWriter(output, digest), gzip.BestSpeed)
	if err != nil {
		return made, errors.Join(err, output.Close())
	}
	if _, err = io.Copy(packed, source); err != nil {
		return made, errors.Join(err, packed.Close(), output.Close())
	}
	if err = errors.Join(packed.Close(), output.Sync()); err != nil {
		return made, errors.Join(err, output.Close())
	}
	info, err := output.Stat()
	if err != nil {
		return made, errors.Join(err, output.Close())
	}
	return held{info.Size(), hex.EncodeToString(digest.Sum(nil))}, output.Close()
}
