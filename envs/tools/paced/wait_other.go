//go:build !linux

package main

import "time"

func newSleep() func(time.Duration) { return time.Sleep }
