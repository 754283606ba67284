package Test::Xet::Browser;

# Copyright (C) the ngx_http_xet_module authors

# Controls a headless Chromium over a pipe (the DevTools protocol).
#
#     my $b = Test::Xet::Browser->new();    # undef: not installed
#     my $b = Test::Xet::Browser->new('--host-rules=MAP a.example 127.0.0.1');
#
#     $b->open('http://127.0.0.1:8080/');
#     is($b->js('document.title'), 'Hello');
#
#     $b->call('Emulation.setScriptExecutionDisabled', { value => \1 });

use warnings;
use strict;

use Fcntl qw/ F_SETFD /;
use File::Temp qw/ tempdir /;
use IO::Select;
use JSON::PP ();
use MIME::Base64 qw/ decode_base64 /;
use POSIX ();
use Time::HiRes qw/ time /;

use Test::Xet::Process qw/ patience reap spew wait_for /;

my $json = JSON::PP->new()->utf8()->allow_nonref();

sub new {
	my ($class, @options) = @_;

	return undef if system('chromium --version >/dev/null 2>&1') != 0;

	pipe(my $in, my $to) or die $!;
	pipe(my $from, my $out) or die $!;

	my $profile = tempdir(CLEANUP => 1);
	my $pid = fork() // die $!;

	if (!$pid) {

		# move the descriptors to higher numbers first: a pipe may
		# already use 3 or 4

		my $read = POSIX::dup2(fileno($in), 20);
		my $write = POSIX::dup2(fileno($out), 21);

		POSIX::dup2($read, 3);
		POSIX::dup2($write, 4);
		POSIX::close($_) for 5 .. 21;

		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>', "$profile/chromium.log");
		open(STDERR, '>&', \*STDOUT);

		exec('chromium', '--headless=new', '--no-sandbox',
			'--disable-gpu', '--no-first-run',
			'--disable-extensions', '--disable-dev-shm-usage',
			'--disable-background-networking',
			'--disable-component-update', '--mute-audio',
			'--force-renderer-accessibility', '--lang=en',
			'--remote-debugging-pipe', @options,
			"--user-data-dir=$profile", 'about:blank')
			or POSIX::_exit(1);
	}

	my $self = bless { pid => $pid, owner => $$, to => $to,
		from => $from, id => 0, buffer => '', events => [],
		profile => $profile }, $class;

	my $target = $self->call('Target.createTarget',
		{ url => 'about:blank' })->{targetId};

	$self->{session} = $self->call('Target.attachToTarget',
		{ targetId => $target, flatten => \1 })->{sessionId};

	$self->call("$_.enable")
		for qw/ Page Runtime Log Network Accessibility /;

	return $self;
}

# Sends a command and returns its result.

sub call {
	my ($self, $method, $params) = @_;

	my $id = ++$self->{id};

	syswrite($self->{to}, $json->encode({ id => $id, method => $method,
		params => $params || {}, $self->{session}
		? (sessionId => $self->{session}) : () }) . "\0") or die $!;

	my $answer;

	wait_for(60, sub {
		$answer = $self->message() while !$answer
			&& $self->readable();

		undef $answer if $answer && ($answer->{id} // 0) != $id;

		return $answer;
	}) or die "$method: no answer\n";

	die "$method: $answer->{error}{message}\n" if $answer->{error};

	return $answer->{result};
}

sub readable {
	my ($self) = @_;

	return index($self->{buffer}, "\0") >= 0
		|| IO::Select->new($self->{from})->can_read(0.05);
}

# Returns the next complete message that is not an event, undef if there is
# none; events are stored.

sub message {
	my ($self) = @_;

	if (index($self->{buffer}, "\0") < 0) {
		sysread($self->{from}, $self->{buffer}, 1 << 20,
			length($self->{buffer})) or die "the browser ends\n";
	}

	return undef unless $self->{buffer} =~ s/^([^\0]*)\0//;

	my $message = $json->decode($1);

	if (!$message->{id}) {
		push @{ $self->{events} }, $message;
		return undef;
	}

	return $message;
}

# Returns the parameters of the stored events of this name.

sub events {
	my ($self, $name) = @_;

	$self->message() while $self->readable();

	return map { $_->{params} } grep { $_->{method} eq $name }
		@{ $self->{events} };
}

sub open {
	my ($self, $url) = @_;

	$self->{events} = [];
	$self->call('Page.navigate', { url => $url });

	wait_for(60, sub { $self->events('Page.loadEventFired') })
		or die "$url does not load\n";
}

# Returns the value of an expression, which may be a promise.

sub js {
	my ($self, $text) = @_;

	my $result = $self->call('Runtime.evaluate', { expression => $text,
		returnByValue => \1, awaitPromise => \1, userGesture => \1 });

	die "$text: $result->{exceptionDetails}{text}\n"
		if $result->{exceptionDetails};

	return $result->{result}{value};
}

sub key {
	my ($self, $key) = @_;

	my %o = (key => $key, code => $key, windowsVirtualKeyCode =>
		{ Tab => 9, Enter => 13 }->{$key},
		$key eq 'Enter' ? (text => "\r") : ());

	$self->call('Input.dispatchKeyEvent', { type => $_, %o })
		for qw/ keyDown keyUp /;
}

sub size {
	my ($self, $width, $height) = @_;

	$self->call('Emulation.setDeviceMetricsOverride', { width => $width,
		height => $height, deviceScaleFactor => 1,
		mobile => $width < 600 ? \1 : \0 });
}

sub screenshot {
	my ($self, $file) = @_;

	# of a very long page, the browser needs minutes for all of it

	my $whole = $self->js('document.documentElement.scrollHeight < 4000');

	spew($file, decode_base64($self->call('Page.captureScreenshot',
		{ captureBeyondViewport => $whole ? \1 : \0 })->{data}));
}

# Returns [ role, name ] of every element that a screen reader reads.

sub accessible {
	my ($self) = @_;

	return map { [ $_->{role}{value}, $_->{name}{value} // '' ] }
		grep { !$_->{ignored} }
		@{ $self->call('Accessibility.getFullAXTree')->{nodes} };
}

# Returns the same elements as role => [ names ].

sub roles {
	my ($self) = @_;

	my %roles;

	push @{ $roles{$_->[0]} }, $_->[1] for $self->accessible();

	return %roles;
}

# Returns the lowest contrast between any text and its background (WCAG 2).

sub contrast {
	my ($self) = @_;

	return $self->js(<<'EOJ');
(function () {
    function channels(c) {
        return c.match(/[\d.]+/g).map(Number);
    }

    function light(c) {
        const [r, g, b] = channels(c).slice(0, 3).map(function (v) {
            v /= 255;
            return v <= 0.03928 ? v / 12.92
                                : Math.pow((v + 0.055) / 1.055, 2.4);
        });

        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }

    function ground(e) {
        for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;

            if (channels(c)[3] !== 0) {
                return c;
            }
        }

        return "rgb(255, 255, 255)";
    }

    let worst = 21;

    for (const e of document.querySelectorAll("h1, h2, h3, p, a, li, dt, dd,"
        + "th, td, time, pre, code, summary, label, input, button"))
    {
        const a = light(getComputedStyle(e).color), b = light(ground(e));

        worst = Math.min(worst, (Math.max(a, b) + 0.05)
                                / (Math.min(a, b) + 0.05));
    }

    return worst;
})()
EOJ
}

sub close {
	my ($self) = @_;

	my $pid = delete $self->{pid} or return;

	delete @$self{qw/ to from /};
	kill('TERM', $pid);
	reap($pid, 10) // do { kill('KILL', $pid); reap($pid, 5) };
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $@, $!);
	$self->close() if $self->{owner} == $$;
}

1;
