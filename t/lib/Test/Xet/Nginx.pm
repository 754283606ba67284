package Test::Xet::Nginx;

# Copyright (C) the ngx_http_xet_module authors

# Starts, stops and reloads an nginx whose prefix is its own folder, and reads
# its log.

use warnings;
use strict;

use Test::Xet::Process qw/
	build_dir children cmdline fds owned reap run_command slurp spawn spew
	wait_for
/;

# Options:
#
#     dir     the prefix of nginx, a folder
#     module  module to load, unless it is linked in
#     env     additional environment variables
#     prefix  [ ... ], words to put before the nginx command

sub new {
	my ($class, %o) = @_;

	my $self = bless {
		dir => $o{dir}, binary => binary(), exits => [], allow => [],
		env => $o{env}, prefix => $o{prefix}
	}, $class;

	mkdir("$self->{dir}/temp");
	mkdir("$self->{dir}/logs");	# a self-built nginx logs there

	return $self;
}

sub binary {
	return $ENV{XET_TEST_NGINX} || '/usr/sbin/nginx';
}

sub module {
	my $module = $ENV{XET_TEST_MODULE}
		// build_dir() . '/nginx/ngx_http_xet_module.so';

	return $module if $module eq '' || -f $module;

	die "no module at $module: run make first\n";
}

# Returns the user and group of the workers if the test runs as root.

sub user {
	return () if $> != 0;

	my $user = $ENV{XET_TEST_USER} || 'nobody';
	my $gid = (getpwnam($user))[3];
	die "no user $user\n" unless defined $gid;

	return ($user, scalar getgrgid($gid));
}

sub version {
	return (run_command([ binary(), '-V' ]))[1];
}

sub write_conf {
	my ($self, $text) = @_;

	spew("$self->{dir}/nginx.conf", $text);
	$self->{conf} = $text;
}

sub args {
	my ($self, $conf) = @_;

	return (@{ $self->{prefix} || [] },
		$self->{binary}, '-p', $self->{dir}, '-e',
		"$self->{dir}/error.log", '-c',
		"$self->{dir}/" . ($conf || 'nginx.conf'));
}

# Runs nginx -t with another configuration: returns (valid, output).  Messages
# of that nginx do not go to the log of the test.  Options are those of spawn().

sub config_test {
	my ($self, $text, %o) = @_;

	$text =~ s!\Q$self->{dir}\E/error\.log!$self->{dir}/test.log!g;
	$text =~ s!\Q$self->{dir}\E/nginx\.pid!$self->{dir}/test.pid!g;
	spew("$self->{dir}/test.conf", $text);

	my ($status, $out) = run_command([ $self->{binary}, '-t', '-p',
		$self->{dir}, '-e', "$self->{dir}/test.log",
		'-c', "$self->{dir}/test.conf" ], %o);

	return ($status == 0 ? 1 : 0, $out);
}

sub run {
	my ($self) = @_;

	die "nginx runs already\n" if $self->{pid};

	unlink("$self->{dir}/nginx.pid");

	$self->{pid} = spawn([ $self->args() ], dir => $self->{dir},
		output => "$self->{dir}/nginx.out", env => $self->{env});

	my $ready = wait_for(20, sub {
		my $status = reap($self->{pid}, 0);

		if (defined $status) {
			$self->{pid} = undef;
			die "nginx does not start ($status):\n"
				. $self->output() . $self->log();
		}

		return (slurp("$self->{dir}/nginx.pid", 1) // '')
			=~ /^\Q$self->{pid}\E$/ && $self->complete();
	});

	die "nginx does not start in time:\n" . $self->log() unless $ready;
}

sub pid {
	return $_[0]->{pid};
}

sub single {
	return $_[0]->{conf} =~ /^\s*master_process\s+off;/m;
}

sub workers {
	my ($self) = @_;

	return 1 if $self->single();
	return $self->{conf} =~ /^\s*worker_processes\s+(\d+);/m ? $1 : 1;
}

# Returns whether the configured number of workers is running, and none of @old
# is left.  The old workers still run for a moment after a reload has started
# the new workers.

sub complete {
	my ($self, @old) = @_;

	my %now = map { $_ => 1 } $self->worker_pids();

	return keys %now == $self->workers() && !grep { $now{$_} } @old;
}

# Returns the workers that accept connections; with all => 1 also those that are
# shutting down.

sub worker_pids {
	my ($self, %o) = @_;

	return () unless $self->{pid};
	return ($self->{pid}) if $self->single();

	my $title = $o{all} ? qr/^nginx: worker process/
		: qr/^nginx: worker process$/;

	return grep { cmdline($_) =~ $title } children($self->{pid});
}

# Stops nginx gracefully; returns true if it ended in time and with status 0.

sub stop {
	my ($self, %o) = @_;

	return 1 unless $self->{pid};

	return $self->end($o{signal} || 'QUIT', $o{timeout} || 20);
}

sub end {
	my ($self, $signal, $timeout) = @_;

	my $pid = $self->{pid};

	CORE::kill('CONT', $_) for $self->worker_pids(all => 1);
	CORE::kill($signal, $pid);

	my $status = reap($pid, $timeout);

	if (!defined $status) {
		push @{ $self->{exits} }, "no exit in $timeout s";
		$self->kill();
		return 0;
	}

	$self->{pid} = undef;

	push @{ $self->{exits} }, $status == 0 ? 0
		: $status & 127 ? 'signal ' . ($status & 127)
		: 'code ' . ($status >> 8);

	return $status == 0;
}

# Kills the remaining processes after a failure.

sub kill {
	my ($self) = @_;

	my $pid = $self->{pid};
	return unless $pid && owned($pid);

	my @workers = children($pid);

	CORE::kill('KILL', $pid, @workers);
	reap($pid, 5);
	$self->{pid} = undef;
}

# Reloads nginx, and waits for the new workers unless wait is 0.  Returns the
# old workers, which may still be busy with their requests.

sub reload {
	my ($self, %o) = @_;

	my @old = $self->worker_pids(all => 1);

	CORE::kill('HUP', $self->{pid});

	if ($o{wait} // 1) {
		wait_for(20, sub { $self->complete(@old) })
			or die "no new workers after a reload:\n"
			. $self->log();
	}

	return @old;
}

sub reopen {
	my ($self) = @_;

	CORE::kill('USR1', $self->{pid});
}

# Kills a worker, by default the first one, and waits for its replacement.

sub kill_worker {
	my ($self, $signal, $pid) = @_;

	$signal ||= 'KILL';
	$pid ||= ($self->worker_pids())[0];

	push @{ $self->{allow} }, qr/worker process $pid exited on signal/;

	CORE::kill($signal, $pid);

	wait_for(20, sub { $self->complete($pid) })
		or die "no new worker after a kill:\n" . $self->log();

	return $pid;
}

sub log {
	my ($self, $from) = @_;

	my $log = slurp("$self->{dir}/error.log", 1) // '';

	return $from ? substr($log, $from) : $log;
}

# Returns what nginx wrote to standard error before it opened the log, and
# reports of sanitizers.

sub output {
	return slurp("$_[0]->{dir}/nginx.out", 1) // '';
}

sub wait_log {
	my ($self, $regex, $timeout, $from) = @_;

	return wait_for($timeout || 10, sub { $self->log($from) =~ $regex });
}

# Returns the log lines that no run should have.

sub complaints {
	my ($self, @allow) = @_;

	my @lines = grep { /\[(?:alert|emerg|crit)\]/ }
		split(/\n/, $self->log());

	for my $allow (@allow, @{ $self->{allow} }) {
		@lines = grep { $_ !~ $allow } @lines;
	}

	return @lines;
}

sub sanitizer {
	my ($self) = @_;

	my $text = $self->output() . $self->log();

	return $text =~ /Sanitizer|runtime error:/
		? substr($text, $-[0] > 80 ? $-[0] - 80 : 0, 4000) : undef;
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);
	$self->kill();
}

1;
