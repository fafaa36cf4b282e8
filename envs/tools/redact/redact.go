// Package redact removes credentials from results before they are written: scripts/loadstone/config/redact.py says which.
package redact

import (
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const word = "redacted"

// Settings are the names of headers, in lower case with "-" for "_", the pattern of parameters of URLs, whose groups are
// what precedes the value, the parameter's name, and the value, and that of URLs with a user, whose groups are what
// precedes it, and the user.
type Settings struct {
	Headers []string `json:"headers"`
	Pattern string   `json:"pattern"`
	User    string   `json:"user"`
}

// Removed is how many values were removed, by the names of headers and parameters.
type Removed struct {
	Headers map[string]int `json:"headers,omitempty"`
	Query   map[string]int `json:"query,omitempty"`
}

// Redactor redacts results, one at a time.
type Redactor struct {
	Removed   Removed
	headers   map[string]bool
	parameter *regexp.Regexp
	user      *regexp.Regexp
	urls      map[string]redacted // of requests, which are few
}

type redacted struct {
	text  string
	names []string
}

// New returns an error if the pattern is none.
func New(settings Settings) (*Redactor, error) {
	it := &Redactor{
		Removed: Removed{map[string]int{}, map[string]int{}},
		headers: map[string]bool{},
		urls:    map[string]redacted{},
	}
	for _, name := range settings.Headers {
		it.headers[name] = true
	}
	var ofParameter, ofUser error
	it.parameter, ofParameter = compiled(settings.Pattern)
	it.user, ofUser = compiled(settings.User)
	return it, errors.Join(ofParameter, ofUser)
}

// compiled returns nil for no pattern.
func compiled(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	return regexp.Compile(pattern)
}

// Result redacts the headers, the URL and the error of a result.
func (r *Redactor) Result(result *vegeta.Result) {
	for name, values := range result.Headers {
		secret := r.headers[strings.ReplaceAll(strings.ToLower(name), "_", "-")]
		for i, value := range values {
			if secret {
				values[i] = word
				r.Removed.Headers[name]++
			} else {
				values[i] = r.text(value)
			}
		}
	}
	found, known := r.urls[result.URL]
	if !known {
		found.text, found.names = r.parameters(result.URL)
		if len(r.urls) < 1000 {
			r.urls[result.URL] = found
		}
	}
	result.URL = found.text
	r.count(found.names)
	result.Error = r.text(result.Error)
}

// Write writes what was removed to a file as JSON; without a name it writes nothing.
func (r *Redactor) Write(name string) error {
	if name == "" {
		return nil
	}
	content, err := json.Marshal(r.Removed)
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

func (r *Redactor) count(names []string) {
	for _, name := range names {
		r.Removed.Query[name]++
	}
}

func (r *Redactor) text(text string) string {
	text, names := r.parameters(text)
	r.count(names)
	return text
}

// parameters returns the text without users and values of parameters, and the names of those that had one.
func (r *Redactor) parameters(text string) (string, []string) {
	var names []string
	if r.user != nil && strings.Contains(text, "@") {
		for range r.user.FindAllStringIndex(text, -1) {
			names = append(names, "user@")
		}
		text = r.user.ReplaceAllString(text, "${1}"+word+"@")
	}
	if r.parameter == nil || !strings.ContainsAny(text, "=%") || !strings.ContainsAny(text, "?&#;%") {
		return text, names
	}
	for _, found := range r.parameter.FindAllStringSubmatch(text, -1) {
		if found[3] != "" {
			names = append(names, found[2])
		}
	}
	return r.parameter.ReplaceAllString(text, "${1}"+word), names
}
