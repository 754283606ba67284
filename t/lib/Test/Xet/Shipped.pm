package Test::Xet::Shipped;

# Copyright (C) the ngx_http_xet_module authors

# Starts the server of "make run" by docker/run.sh, in a folder and at a port
# of its own, with the shipped files of conf.
#
#     my $s = Test::Xet::Shipped->new();
#
#     $s->url('/api/health');
#     $s->env()->{XET_STORE};      variables of DIR/env
#     $s->get('/status')->{status};
#     $s->requests();              the requests since the last call
#     $s->received('xorbs');       received bytes, according to the metrics
#     $s->done();                  stops it, and checks what is left

use warnings;
use strict;

use File::Path qw/ remove_tree /;
use File::Temp qw/ tempdir /;
use Test::More ();

use Test::Xet::HTTP;
use Test::Xet::Metrics;
use Test::Xet::Process qw/
	alive build_dir free_port patience root run_command slurp
/;

my @live;

# Uses a folder in /tmp: if the test runs as root, the users postgres and
# www-data need access.

sub new {
	my ($class, %env) = @_;

	my $dir = tempdir('xet-shipped-XXXXXX', DIR => '/tmp');

	chmod(0755, $dir);

	my $self = bless { dir => $dir, port => free_port(), owner => $$,
		mark => 0 }, $class;

	push @live, $self;

	$SIG{ALRM} = sub {
		Test::More::diag('the test takes too long');
		exit(1);
	};

	$SIG{$_} = sub { exit(1) } for qw/ INT TERM HUP PIPE /;

	alarm(patience(900));

	my ($status, $out) = $self->script('run', %env);

	die "docker/run.sh: $out\n" if $status;

	return $self;
}

sub script {
	my ($self, $name, %env) = @_;

	return run_command([ 'sh', root() . "/docker/$name.sh" ],
		env => { DIR => $self->{dir}, PORT => $self->{port},
			BUILD => build_dir(), %env },
		timeout => 300, dir => root());
}

sub dir { return $_[0]->{dir} }
sub url { return "http://127.0.0.1:$_[0]->{port}$_[1]" }

# Returns the variables that DIR/env sets, as a shell reads them.

sub env {
	my ($self) = @_;

	my ($status, $out) = run_command([ 'sh', '-c',
		'. "$0"; env', "$self->{dir}/env" ]);

	die "DIR/env: $out\n" if $status;

	return { $out =~ /^((?:XET|HF)_\w+)=(.*)$/mg };
}

sub http {
	my ($self, $method, $uri, @args) = @_;

	return Test::Xet::HTTP->request($self->{port}, $method, $uri, @args);
}

sub get { return shift->http('GET', @_) }

# Sets a regex for error log lines that are expected.

sub allow { $_[0]->{allow} = $_[1] }

sub log { return slurp("$_[0]->{dir}/nginx/logs/error.log", 1) // '' }

# Returns the requests since the last call, as [ method, path, status, bytes
# sent ].

sub requests {
	my ($self) = @_;

	my $log = slurp("$self->{dir}/nginx/logs/access.log");
	my $new = substr($log, $self->{mark});

	$self->{mark} = length($log);

	return map { [ /"(\w+) (.*) HTTP\/[\d.]+" (\d+) (\d+) "/ ] }
		split(/\n/, $new);
}

sub received {
	my ($self, $route) = @_;

	return metrics($self)->{
		"xet_received_bytes_total{route=\"$route\"}" } // 0;
}

# Returns the processes of this server.  Recognizes nginx by the prefix in its
# command line, and PostgreSQL by its working directory.

sub processes {
	my ($self) = @_;

	my @pids;

	for my $proc (glob('/proc/[0-9]*')) {
		my $title = slurp("$proc/cmdline", 1) // '';
		my $cwd = readlink("$proc/cwd") // '';

		push @pids, $proc =~ s!.*/!!r
			if $proc !~ m!/$$\z! && ($cwd =~ m!^\Q$self->{dir}\E/!
				|| $title =~ m!\Q$self->{dir}/nginx\E!);
	}

	return grep { alive($_) } @pids;
}

sub done {
	my ($self) = @_;

	my ($status, $out) = $self->script('stop');

	Test::More::is($status, 0, 'it stops') or Test::More::diag($out);
	Test::More::is(join(' ', $self->processes()), '',
		'no process is left');

	my $allow = $self->{allow} // qr/(?!)/;

	Test::More::is(join("\n", grep {
		/\[(?:alert|emerg|crit|error)\]/ && $_ !~ $allow
	} split(/\n/, $self->log())), '', 'no error in its log');

	remove_tree($self->{dir});
	Test::More::done_testing();
}

END {
	my $code = $?;

	for my $self (grep { $_->{owner} == $$ && -d $_->{dir} } @live) {
		$self->script('stop');
		remove_tree($self->{dir});
	}

	$? = $code;
}

1;
