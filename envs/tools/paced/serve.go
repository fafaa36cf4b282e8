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
	"loadstone/tools/redact"
)

// States of a generator with -listen.
const (
	waiting = "waiting" // for a plan
	planned = "planned" // waiting for the start time
	sending = "sending"
	done    = "done" // results can be downloaded
	failed  = "failed"
)

// held is a compressed file of results.
type held struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// status is the response of GET /status. Now is the time of this machine's clock, to compare clocks.
type status struct {
	Now   int64           `json:"now"`
	State string          `json:"state"`
	Error string          `json:"error,omitempty"`
	Files map[string]held `json:"files,omitempty"`

	Negotiated []connection.Entry `json:"negotiated"`
	Redacted   *redact.Removed    `json:"redacted"`
}

// order is the body of POST /plan.
type order struct {
	plan
	Timeout int64 `json:"timeout"` // nanoseconds
}

// agent is a generator that is controlled over HTTP, for one attack. Every request needs the header X-Loadstone-Token.
//
//	GET  /status           its state, and the time of its clock
//	POST /plan             what to send
//	POST /start            the start time, by its own clock, in the future
//	GET  /measured /others the results, compressed with gzip; supports the header Range
//	POST /end              exit
type agent struct {
	token  string
	folder string
	tls    string // folder of certificates
	stop   chan os.Signal

	mutex   sync.Mutex
	status  status
	attack  *attack
	given   []byte // the plan as received
	timeout time.Duration
	startAt int64
	latest  time.Time // of the last request
	ended   chan struct{}
}

// serve answers requests until POST /end. If there is no request for longer than patience, even during an attack, it
// returns an error. So a generator exits by itself if the command that started it is gone.
func serve(address, folder, tls string, patience time.Duration, signals chan os.Signal) error {
	token := os.Getenv("LOADSTONE_TOKEN")
	if token == "" {
		return errors.New("LOADSTONE_TOKEN is not set")
	}
	it := &agent{token: token, folder: folder, tls: tls, stop: make(chan os.Signal, 1), latest: time.Now(), ended: make(chan struct{})}
	it.status.State, it.status.Redacted = waiting, &redact.Removed{} // says that this version redacts
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
	ticker := time.NewTicker(max(patience/20, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-it.ended:
			return nil
		case s := <-signals:
			it.stop <- s
			return fmt.Errorf("stopped by the signal %q", s)
		case <-ticker.C:
			it.mutex.Lock()
			silent := time.Since(it.latest)
			it.mutex.Unlock()
			if silent > patience {
				return fmt.Errorf("no request for %s", silent.Round(time.Second))
			}
		}
	}
}

func (a *agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", a.getStatus)
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
			http.Error(w, "wrong token", http.StatusForbidden)
			return
		}
		a.mutex.Lock()
		a.latest = time.Now()
		a.mutex.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func (a *agent) path(name string) string { return filepath.Join(a.folder, name) }

func (a *agent) getStatus(w http.ResponseWriter, _ *http.Request) {
	a.mutex.Lock()
	current := a.status
	a.mutex.Unlock()
	current.Now = time.Now().UnixNano()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(current)
}

func (a *agent) plan(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var given order
	content, err := io.ReadAll(r.Body)
	if err == nil && a.status.State == planned && bytes.Equal(content, a.given) { // a retry, because the response was lost
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
		given.plan.Connection.Folder = a.tls
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
	if err == nil && a.startAt != 0 && a.startAt == at.Nanoseconds { // a retry, because the response was lost
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
	a.status.State, a.startAt = sending, at.Nanoseconds
	go a.send()
	_, _ = io.WriteString(w, "{}")
}

// send runs the attack and compresses the results afterwards, so that nothing else uses the machine during the attack.
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
	a.status.Redacted = &a.attack.hide.Removed
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

// compress replaces a file by file.gz.
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
