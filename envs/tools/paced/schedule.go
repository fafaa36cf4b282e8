package main

import (
	"errors"
	"math"
	"time"
)

// stage is a period in which the rate changes linearly, from Rate to To requests per second, within Nanoseconds.
// Requests is the number of its requests.
type stage struct {
	Rate        float64 `json:"rate"`
	To          float64 `json:"to"`
	Nanoseconds int64   `json:"nanoseconds"`
	Requests    uint64  `json:"requests"`
	Measured    bool    `json:"measured"`
}

// due is when request n is due, since the start of the stage: the t at which the integral of the rate,
// Rate t + (To - Rate) t^2 / 2 d, is n. At a constant rate the interval is an integer in nanoseconds, as in
// "vegeta attack" (ConstantPacer.Pace).
func (s stage) due(n uint64) time.Duration {
	if s.Rate == s.To && s.Rate > 0 {
		return time.Duration(n) * time.Duration(1e9/s.Rate)
	}
	d := float64(s.Nanoseconds) / 1e9
	slope := (s.To - s.Rate) / d
	root := math.Sqrt(math.Max(0, s.Rate*s.Rate+2*slope*float64(n)))
	if n == 0 || s.Rate+root == 0 {
		return 0
	}
	return time.Duration(math.Min(2*float64(n)/(s.Rate+root), d) * 1e9)
}

// overtime is how long late requests are still sent after the end of the plan.
const overtime = time.Second

// schedule is a vegeta.Pacer for consecutive stages. Of each stage it sends requests part, part + of, part + 2 of, ... It
// counts its own requests across all stages.
type schedule struct {
	stages   []stage
	part, of uint64
	sleep    func(time.Duration)
	begin    time.Time
	end      time.Duration   // of all stages, since begin
	starts   []time.Duration // of each stage, since begin
	firsts   []uint64        // own count at the first request of each stage
	total    uint64          // number of own requests
	gaveUp   bool            // because it was too late
}

func newSchedule(stages []stage, part, of uint64) (*schedule, error) {
	s := &schedule{stages: stages, part: part, of: of, sleep: newSleep()}
	planned := uint64(0)
	for _, each := range stages {
		if each.Nanoseconds <= 0 || each.Rate < 0 || each.To < 0 {
			return nil, errors.New("a stage needs a duration above zero and no negative rates")
		}
		s.starts, s.firsts = append(s.starts, s.end), append(s.firsts, s.total)
		s.end += time.Duration(each.Nanoseconds)
		s.total += s.own(each)
		planned += each.Requests
	}
	if planned == 0 {
		return nil, errors.New("no stage has a request")
	}
	return s, nil
}

// own is the number of a stage's requests that this schedule sends.
func (s *schedule) own(of stage) uint64 {
	return (of.Requests + s.of - 1 - s.part) / s.of
}

// find returns the stage of own request n, and its number in that stage.
func (s *schedule) find(n uint64) (i int, within uint64) {
	i = len(s.stages) - 1
	for s.firsts[i] > n || s.own(s.stages[i]) == 0 {
		i--
	}
	return i, s.part + (n-s.firsts[i])*s.of
}

// Pace waits until the next request is due. It waits itself and always returns 0, because vegeta's own waiting is less
// precise (see newSleep).
func (s *schedule) Pace(_ time.Duration, sent uint64) (time.Duration, bool) {
	elapsed := time.Since(s.begin)
	s.gaveUp = sent < s.total && elapsed > s.end+overtime
	if sent >= s.total || s.gaveUp {
		return 0, true
	}
	i, within := s.find(sent)
	s.sleep(s.starts[i] + s.stages[i].due(within) - elapsed)
	return 0, false
}

// Rate is the rate at a time of the attack.
func (s *schedule) Rate(elapsed time.Duration) float64 {
	for i, each := range s.stages {
		if within := elapsed - s.starts[i]; within <= time.Duration(each.Nanoseconds) {
			return each.Rate + (each.To-each.Rate)*float64(within)/float64(each.Nanoseconds)
		}
	}
	return 0
}

// place returns the file (1: the measured stage) of own request n, and its number there, counting all generators.
func (s *schedule) place(n uint64) (file int, seq uint64) {
	i, seq := s.find(n)
	if s.stages[i].Measured {
		file = 1
	}
	for _, each := range s.stages[:i] {
		if each.Measured == s.stages[i].Measured {
			seq += each.Requests
		}
	}
	return file, seq
}
