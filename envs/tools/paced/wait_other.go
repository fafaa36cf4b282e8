//go:build !linux

package main

import "time"

func sleep(wait time.Duration) { time.Sleep(wait) }
