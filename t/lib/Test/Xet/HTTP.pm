package Test::Xet::HTTP;

# Copyright (C) the ngx_http_xet_module authors

# Implements a raw HTTP/1.1 client, for requests that no proper client would
# send.  An object is a connection.  A request may be sent in pieces.  Every
# wait has a timeout.
#
#     my $r = Test::Xet::HTTP->request(8080, 'GET', '/', { Range => '...' });
#
#     my $c = Test::Xet::HTTP->new(8080);
#     $c->start('POST', '/', { 'Content-Length' => 10 });
#     $c->send('12345');
#     $c->abort();

use warnings;
use strict;

use Errno qw/ EAGAIN EINTR EWOULDBLOCK /;
use IO::Select;
use IO::Socket::INET;
use Socket qw/
	IPPROTO_TCP SOL_SOCKET SO_LINGER SO_RCVBUF SO_SNDBUF TCP_NODELAY
/;
use Time::HiRes qw/ sleep time /;

use Test::Xet::HTTP::Response;
use Test::Xet::Process qw/ patience /;
use Test::Xet::Secrets;

my $default_timeout = 10;

# Opens a connection to a port.  Options:
#
#     timeout  seconds for each response and each send
#     connect  seconds for the connection attempt
#     addr     address of the server, 127.0.0.1
#     rcvbuf, sndbuf  sizes of the socket's buffers
#     from     local address

sub new {
	my ($class, $port, %o) = @_;

	my $socket = IO::Socket::INET->new(
		Proto => 'tcp', PeerAddr => $o{addr} || '127.0.0.1',
		PeerPort => $port,
		Timeout => patience($o{connect} || $default_timeout),
		$o{from} ? (LocalAddr => $o{from}) : ()
	) or die "cannot connect to port $port: $@\n";

	$socket->setsockopt(SOL_SOCKET, SO_RCVBUF, $o{rcvbuf}) if $o{rcvbuf};
	$socket->setsockopt(SOL_SOCKET, SO_SNDBUF, $o{sndbuf}) if $o{sndbuf};

	# head and body are two packets; the kernel must not delay the second
	# one

	$socket->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
	$socket->blocking(0);

	return bless {
		socket => $socket, port => $port, buffer => '', eof => 0,
		host => ($o{addr} || '127.0.0.1') . ":$port",
		timeout => patience($o{timeout} || $default_timeout)
	}, $class;
}

# --------------------------------------------------------------------------
# complete requests

# Sends one request on its own connection.  Options are those of new(), those
# of send_body(), and
#
#     keep    keep-alive; by default the connection is closed
#     expect  sends "Expect: 100-continue" and waits for the response
#     host    value of Host instead of the address and port

sub request {
	my ($class, $port, $method, $uri, $headers, $body, %o) = @_;

	my $self = $class->new($port, %o);
	my $response = $self->exchange($method, $uri, $headers, $body,
		close => 1, %o);
	$self->close();

	return $response;
}

# Sends a request on an open connection, which is kept alive.

sub exchange {
	my ($self, $method, $uri, $headers, $body, %o) = @_;

	my @headers = ref $headers eq 'HASH'
		? map { $_ => $headers->{$_} } sort keys %$headers
		: @{ $headers || [] };

	if (defined $body) {
		push @headers, $o{chunked}
			? ('Transfer-Encoding' => 'chunked')
			: ('Content-Length' => body_length($body))
			unless grep { defined
				&& /^(content-length|transfer-encoding)$/i }
				@headers;
	}

	push @headers, 'Expect' => '100-continue' if $o{expect};

	$self->start($method, $uri, \@headers, %o);

	if ($o{expect}) {
		my $response = $self->response($method, %o, interim => 1);

		return $response if $response->{status} != 100;
	}

	$self->send_body($body, %o) if defined $body;

	return $self->response($method, %o);
}

sub body_length {
	my ($body) = @_;

	return length($$body) if ref $body eq 'SCALAR';

	if (ref $body eq 'ARRAY') {
		my $sum = 0;
		$sum += length($_) for @$body;
		return $sum;
	}

	return length($body);
}

# Sends the request line and headers.  "Host" and "Connection" are added unless
# given; a header with an undefined value is omitted.

sub start {
	my ($self, $method, $uri, $headers, %o) = @_;

	my @headers = ref $headers eq 'HASH'
		? map { $_ => $headers->{$_} } sort keys %$headers
		: @{ $headers || [] };

	my (%seen, $text);

	$text = "$method $uri HTTP/1." . ($o{http10} ? 0 : 1) . "\r\n";

	while (@headers) {
		my ($name, $value) = splice(@headers, 0, 2);

		$seen{lc $name} = 1;
		next unless defined $value;

		$text .= "$name: $_\r\n" for ref $value ? @$value : $value;
	}

	$text .= 'Host: ' . ($o{host} || $self->{host}) . "\r\n"
		unless $seen{host};
	$text .= "Connection: close\r\n"
		if $o{close} && !$o{keep} && !$seen{connection};

	$self->{started} = time();
	note_secrets($text);

	return $self->send("$text\r\n", %o, trickle => 0);
}

# Sends a body: a string, a reference to one, or a list of pieces.
#
#     chunked  chunked coding: a list as its pieces, a string in pieces of this
#              size (1: in one piece)
#     trickle  number of bytes in one write
#     pause    seconds after each write of "trickle" bytes

sub send_body {
	my ($self, $body, %o) = @_;

	my $text = ref $body eq 'SCALAR' ? $body : \$body;

	if (!$o{chunked}) {
		return $self->send($$text, %o) if ref $body ne 'ARRAY';

		for my $piece (@$body) {
			$self->send($piece, %o) or return 0;
			sleep($o{pause}) if $o{pause} && !$o{trickle};
		}

		return 1;
	}

	my $size = $o{chunked} > 1 ? $o{chunked} : length($$text) || 1;

	my @pieces = ref $body eq 'ARRAY' ? @$body
		: unpack("(a$size)*", $$text);

	for my $piece (@pieces) {
		$self->send_chunk($piece, %o) or return 0;
		sleep($o{pause}) if $o{pause} && !$o{trickle};
	}

	return $self->send("0\r\n\r\n", %o);
}

sub send_chunk {
	my ($self, $piece, %o) = @_;

	return $self->send(sprintf("%x\r\n", length($piece))
		. "$piece\r\n", %o);
}

# Sends raw bytes; returns false if not all of them could be sent.  A server may
# respond and close before it has read everything; its response is kept.

sub send {
	my ($self, $data, %o) = @_;

	local $SIG{PIPE} = 'IGNORE';

	my $end = time() + ($o{timeout} ? patience($o{timeout})
		: $self->{timeout});
	my $read = IO::Select->new($self->{socket});
	my $write = IO::Select->new($self->{socket});
	my $step = $o{trickle} || 262144;

	for (my $sent = 0; $sent < length($data); ) {

		my ($readable, $writable) = IO::Select->select(
			$self->{eof} ? undef : $read, $write, undef, 1);

		if ($readable && @$readable) {
			$self->fill(0) or return 0;
		}

		if ($writable && @$writable) {
			my $n = syswrite($self->{socket}, $data, $step, $sent);

			if (defined $n) {
				$sent += $n;
				$end = time() + $self->{timeout} if $n;

				sleep($o{pause} || 0.01) if $o{trickle};

			} elsif (!$!{EAGAIN} && !$!{EINTR}) {
				$self->{send_error} = "$!";
				return 0;
			}
		}

		if (time() > $end) {
			$self->{send_error} = 'timeout';
			return 0;
		}
	}

	return 1;
}

# --------------------------------------------------------------------------
# responses

# Reads more data into the buffer; returns false at the end of input or on
# timeout.

sub fill {
	my ($self, $timeout) = @_;

	return 0 if $self->{eof};

	if ($timeout) {
		return 0 unless IO::Select->new($self->{socket})
			->can_read($timeout > 0 ? $timeout : 0);
	}

	my $n = sysread($self->{socket}, $self->{buffer},
		$self->{step} || 262144, length($self->{buffer}));

	if (defined $n) {
		$self->{eof} = 1 if $n == 0;
		return $n;
	}

	return -1 if $!{EAGAIN} || $!{EINTR};

	$self->{eof} = 1;
	$self->{read_error} = "$!";

	return 0;
}

# Returns a complete response, as Test::Xet::HTTP::Response.  Never dies on a
# server's error: a truncated, malformed or late response has "error" set, and
# status 0 if there is no status line.  1xx responses are counted and, unless
# interim is set, skipped.
#
#     rate  maximum number of bytes to read per second

sub response {
	my ($self, $method, %o) = @_;

	my $response = Test::Xet::HTTP::Response->new($method // 'GET',
		$self->{started} || time());
	my $end = time() + ($o{timeout} ? patience($o{timeout})
		: $self->{timeout});

	local $self->{step} = $o{rate} ? int($o{rate} / 20) + 1 : 0;

	while (1) {
		my $state = $response->feed(\$self->{buffer}, $self->{eof});

		if ($state eq 'done') {
			last if $response->{status} >= 200
				|| $response->{status} == 101
				|| $response->{error} || $o{interim};

			$response = $response->next();
			next;
		}

		my $left = $end - time();

		if ($left <= 0) {
			$response->{error} = 'timeout';
			last;
		}

		$self->fill($left);
		sleep(0.05) if $o{rate};
	}

	$response->{send_error} = delete $self->{send_error};

	note_secrets($response->{raw});

	return $response;
}

# Returns the raw bytes received before the timeout, at most $n.

sub read_some {
	my ($self, $n, $timeout) = @_;

	my $end = time() + patience($timeout // 1);

	while (length($self->{buffer}) < $n && !$self->{eof}) {
		my $left = $end - time();
		last if $left <= 0;

		local $self->{step} = $n - length($self->{buffer});
		$self->fill($left);
	}

	return substr($self->{buffer}, 0, $n, '');
}

# Returns whether the server closes the connection before the timeout, without
# sending another byte.

sub closed {
	my ($self, $timeout) = @_;

	my $end = time() + patience($timeout // 5);

	while (!$self->{eof}) {
		my $left = $end - time();
		return 0 if $left <= 0 || length($self->{buffer});

		$self->fill($left);
	}

	return length($self->{buffer}) ? 0 : 1;
}

# --------------------------------------------------------------------------
# closing

sub close {
	my ($self) = @_;

	CORE::close($self->{socket}) if $self->{socket};
	$self->{socket} = undef;
}

# Closes with a reset.

sub abort {
	my ($self) = @_;

	$self->{socket}->setsockopt(SOL_SOCKET, SO_LINGER,
		pack('ii', 1, 0));
	$self->close();
}

# Shuts down the sending side; the response can still be read.

sub half_close {
	my ($self) = @_;

	shutdown($self->{socket}, 1);
}

1;
