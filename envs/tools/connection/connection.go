// Package connection makes vegeta's options from how a variant is to be reached, and notes what TLS negotiated.
package connection

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// Settings are those of a variant. CA, Cert and Key are PEM texts.
type Settings struct {
	CA         string `json:"ca"`          // the only trusted authorities; empty: those of this machine
	Insecure   bool   `json:"insecure"`    // any certificate is accepted
	Cert       string `json:"cert"`        // of the client
	Key        string `json:"key"`         // of the client
	ServerName string `json:"server_name"` // sent as SNI and verified; empty: the host of the URL
	Protocol   string `json:"protocol"`    // http1, http2 or h2c; empty: what TLS negotiates
	Resolve    string `json:"resolve"`     // ADDRESS:PORT to connect to, instead of what the URL says
	Close      bool   `json:"close"`       // a new connection for each request
	// Hosts that a redirect may lead to, besides those of this machine; nil: any.
	Hosts *[]string `json:"hosts"`

	Folder string `json:"-"` // of ca.pem, cert.pem and key.pem, instead of texts
}

// Negotiated are the parameters that a number of connections have in common. Without TLS only the protocol is known.
type Negotiated struct {
	Protocol    string `json:"protocol"`
	TLS         string `json:"tls,omitempty"`
	Cipher      string `json:"cipher,omitempty"`
	Certificate string `json:"certificate,omitempty"` // SHA-256 of the server's
}

// Log counts connections by what they negotiated. Its methods may be called concurrently.
type Log struct {
	mutex  sync.Mutex
	counts map[Negotiated]int
}

func (l *Log) add(state tls.ConnectionState) error {
	found := Negotiated{Protocol: "http1", TLS: tls.VersionName(state.Version), Cipher: tls.CipherSuiteName(state.CipherSuite)}
	if state.NegotiatedProtocol == "h2" {
		found.Protocol = "http2"
	}
	if len(state.PeerCertificates) > 0 {
		digest := sha256.Sum256(state.PeerCertificates[0].Raw)
		found.Certificate = hex.EncodeToString(digest[:])
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.counts[found]++
	return nil
}

// Entry is one line of a log.
type Entry struct {
	Negotiated
	Handshakes int `json:"handshakes"`
}

// Entries are what was negotiated so far.
func (l *Log) Entries() []Entry {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entries := []Entry{}
	for found, count := range l.counts {
		entries = append(entries, Entry{found, count})
	}
	return entries
}

// Write writes the entries to a file as JSON; without a name it writes nothing.
func (l *Log) Write(name string) error {
	if name == "" {
		return nil
	}
	content, err := json.Marshal(l.Entries())
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// Options are vegeta's for requests to address.
func (s Settings) Options(address string) ([]func(*vegeta.Attacker), *Log, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, nil, err
	}
	log := &Log{counts: map[Negotiated]int{}}
	config, err := s.tls()
	if err != nil {
		return nil, nil, err
	}
	config.VerifyConnection = log.add
	// The order matters: Client replaces everything, KeepAlive resets what ConnectTo sets, and HTTP2 needs the TLS
	// configuration.
	options := []func(*vegeta.Attacker){
		func(a *vegeta.Attacker) { vegeta.Client(s.client())(a) }, // each attacker has its own connections
		vegeta.TLSConfig(config),
		vegeta.HTTP2(s.Protocol != "http1"),
		vegeta.KeepAlive(!s.Close),
	}
	if s.Resolve != "" {
		options = append(options, vegeta.ConnectTo(map[string][]string{hostPort(target): {s.Resolve}}))
	}
	switch s.Protocol {
	case "", "http1", "http2":
	case "h2c":
		options = append(options, vegeta.H2C(true))
	default:
		return nil, nil, fmt.Errorf("the protocol %q is none of http1, http2, h2c", s.Protocol)
	}
	if target.Scheme == "http" {
		log.counts[Negotiated{Protocol: map[bool]string{true: "h2c", false: "http1"}[s.Protocol == "h2c"]}] = 0
	}
	return options, log, nil
}

// client is vegeta's own, but follows redirects only to hosts that may be attacked.
func (s Settings) client() *http.Client {
	dialer := &net.Dialer{
		LocalAddr: &net.TCPAddr{IP: vegeta.DefaultLocalAddr.IP, Zone: vegeta.DefaultLocalAddr.Zone},
		KeepAlive: 30 * time.Second,
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		MaxIdleConnsPerHost: vegeta.DefaultConnections,
		MaxConnsPerHost:     vegeta.DefaultMaxConnections,
	}
	return &http.Client{Timeout: vegeta.DefaultTimeout, Transport: transport, CheckRedirect: s.checkRedirect}
}

func (s Settings) checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) > vegeta.DefaultRedirects {
		return fmt.Errorf("stopped after %d redirects", vegeta.DefaultRedirects)
	}
	if host := next.URL.Hostname(); !s.allows(host) {
		return fmt.Errorf("it redirects to %s, which is not in target.allow", host)
	}
	return nil
}

func (s Settings) allows(host string) bool {
	if s.Hosts == nil || strings.EqualFold(host, "localhost") {
		return true
	}
	if address := net.ParseIP(host); address != nil && address.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(*s.Hosts, func(allowed string) bool { return strings.EqualFold(host, allowed) })
}

func (s Settings) tls() (*tls.Config, error) {
	for name, text := range map[string]*string{"ca": &s.CA, "cert": &s.Cert, "key": &s.Key} {
		if s.Folder == "" {
			break
		}
		content, err := os.ReadFile(filepath.Join(s.Folder, name+".pem"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		*text = string(content)
	}
	config := &tls.Config{InsecureSkipVerify: s.Insecure, ServerName: s.ServerName}
	if s.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(s.CA)) {
			return nil, errors.New("ca holds no certificate in PEM")
		}
	}
	if s.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(s.Cert), []byte(s.Key))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// hostPort is how a connection to a URL is dialled.
func hostPort(target *url.URL) string {
	port := target.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[target.Scheme]
	}
	return net.JoinHostPort(target.Hostname(), port)
}
