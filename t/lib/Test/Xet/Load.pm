package Test::Xet::Load;

# Copyright (C) the ngx_http_xet_module authors

# Runs random clients of several nodes.  They upload files by PUT, and as xorbs
# and shards, with each request to another node.  They also send the same bytes
# to several nodes at the same time, read, and delete.  All responses are
# recorded.
#
#     my $l = Test::Xet::Load->new($t, tokens => { NAME => token });
#
#     $l->nodes(@nodes);              # the nodes that clients use next
#     $l->start(uploads => 3, reads => 1, deletes => 1);
#     ...
#     $l->stop();
#     $l->acknowledged();             # [ hash, name, token ], not deleted
#     $l->bad();                      # responses that no client should get
#     $l->failures();                 # { time, addr, what, status } of requests
#
# Guarantees: every node that responds returns 200 and the right bytes for a
# file that was acknowledged and not deleted, and 404 for a file whose deletion
# was acknowledged.  A 503 from any node says nothing about the file.

use warnings;
use strict;

use parent qw/ Test::Xet::Crowd /;

use Time::HiRes qw/ sleep time /;

use Test::Xet::Bytes;
use Test::Xet::HTTP;
use Test::Xet::Process qw/ slurp spew /;

# Options:
#
#     tokens  { name => token }, tokens of the repos that receive uploads
#     pool    files of make(), to send as xorbs and shards
#     base    path of the API, /api

sub new {
	my ($class, $t, %o) = @_;

	my $dir = $t->dir();

	return $class->SUPER::new(dir => $dir, base => '/api', pool => [], %o,
		files => { map { $_ => "$dir/load.$_" }
			qw/ history bad failures nodes / });
}

sub nodes {
	my ($self, @nodes) = @_;

	spew("$self->{nodes}.new", join('', map {
		$_->addr() . ' ' . $_->port() . "\n" } @nodes));
	rename("$self->{nodes}.new", $self->{nodes}) or die "$!\n";
}

sub start {
	my ($self, %n) = @_;

	my %run = (uploads => \&uploader, reads => \&reader,
		deletes => \&deleter);

	for my $what (sort keys %n) {
		$self->fork_off($run{$what}, "$what$_") for 1 .. $n{$what};
	}
}

sub stop { $_[0]->quit() }

# Returns the files that must exist, as [ hash, name, token's name ]; bytes()
# makes the contents from the name.

sub acknowledged {
	my ($self) = @_;

	my %files;

	for (map { [ split ] } split(/\n/, slurp($self->{history}))) {
		my ($what, $hash, $name, $token) = @$_;

		$files{"$hash $token"} = [ $hash, $name, $token ]
			if $what eq 'A';
		delete $files{"$hash $token"} if $what ne 'A';
	}

	return map { $files{$_} } sort keys %files;
}

sub bad { return split(/\n/, slurp($_[0]->{bad})) }

# Returns the failed requests, whose response was neither 2xx nor 503, as { time
# (of the start), addr, what, status }.  status may also be "refused" or "cut".

sub failures {
	my ($self) = @_;

	return map { my %f; @f{qw/ time addr what status /} = split(' ', $_, 4);
		\%f } split(/\n/, slurp($self->{failures}));
}

# --------------------------------------------------------------------------
# processes

# Makes a random upload: a PUT; a PUT of bytes that other processes may send at
# the same time; or a xorb and a shard that other processes may send as well.

sub uploader {
	my ($self) = @_;

	my $token = $self->token();
	my $kind = int(rand(3));

	if ($kind == 2 && @{ $self->{pool} }) {
		$self->send_made($token);

	} else {
		$self->put($kind ? 'slot-' . int(time() * 4) : $self->fresh(),
			$token);
	}

	sleep(0.01);
}

sub put {
	my ($self, $name, $token) = @_;

	my $r = $self->request('PUT', 'v1/files', $token, body($name));

	return $r unless $r->{status} == 200;

	$self->note('A', $r->json()->{hash}, $name, $token);

	return $r;
}

# Sends each xorb to one node and the shard to another.  If a xorb is collected
# in between, despite the grace period, sends everything again.

sub send_made {
	my ($self, $token) = @_;

	my $file = $self->{pool}[rand(@{ $self->{pool} })];
	my $r;

	for my $try (1 .. 5) {
		for my $xorb (@{ $file->{xorbs} }) {
			$r = $self->request('POST',
				"v1/xorbs/default/$xorb->{hash}", $token,
				$xorb->{bytes}[rand(@{ $xorb->{bytes} })]);
			return if $r->{status} != 200;
		}

		$r = $self->request('POST', 'v1/shards', $token,
			$file->{shard}, allow => qr/^400 unknown_xorb/);

		last if $r->{status} != 400;
	}

	$self->note('A', $file->{hash}, $file->{name}, $token)
		if $r->{status} == 200;
}

# Uploads a file and deletes it; then no node may return it.

sub deleter {
	my ($self) = @_;

	my $name = 'gone-' . $self->fresh();
	my $token = $self->token();
	my $r = $self->put($name, $token);

	return sleep(0.2) if $r->{status} != 200;

	my $hash = $r->json()->{hash};

	# from here on the record says that the file may or may not exist

	$self->note('U', $hash, $name, $token);

	$r = $self->request('DELETE', "v1/files/$hash", $token);

	if ($r->{status} == 204) {
		for (1 .. 2) {
			$r = $self->request('GET', "v1/files/$hash", $token,
				undef, allow => qr/^404/);
			$self->tell('bad', "deleted, and 200: $hash")
				if $r->{status} == 200;
		}

	} elsif ($r->{status} == 404) {
		$self->tell('bad', "acknowledged, not to be deleted: $hash");
	}

	sleep(0.1);
}

sub reader {
	my ($self) = @_;

	my $line = $self->any_line('history') // return sleep(0.05);

	return if $line !~ /^A /;

	my ($what, $hash, $name, $token) = split(' ', $line);

	return if $name =~ /^gone-/;

	my $r = $self->request('GET', "v1/files/$hash", $token);
	my $status = $r->{status};

	$self->tell('bad', "$self->{addr}: acknowledged, and $status: $hash"
		. " $name " . substr($r->{body} // '', 0, 200))
		if $status && $status != 200 && $status != 503;
	$self->tell('bad', "$self->{addr}: other bytes: $hash")
		if $status == 200 && !$r->{error}
		&& $r->{body} ne $self->bytes($name);

	sleep(0.02);
}

# --------------------------------------------------------------------------

sub token {
	my ($self) = @_;

	my @names = sort keys %{ $self->{tokens} };

	return @names ? $names[rand(@names)] : '-';
}

# Sends a request to a random node.  Returns the response; without a response,
# its status is 0.

sub request {
	my ($self, $method, $path, $token, $body, %o) = @_;

	my @nodes = map { [ split ] } split(/\n/, slurp($self->{nodes}));
	my ($addr, $port) = @{ $nodes[rand(@nodes)] };
	my $began = time();
	my $headers = $token ne '-' ? { Authorization =>
		"Bearer $self->{tokens}{$token}" } : {};

	$self->{addr} = $addr;

	my $r = eval { Test::Xet::HTTP->request($port, $method,
		"$self->{base}/$path", $headers, defined $body ? \$body : undef,
		addr => $addr, timeout => 20, connect => 3) };
	my $refused = !$r;

	$r ||= Test::Xet::HTTP::Response->new($method);
	$r->{status} ||= 0;

	my $text = !$refused && $r->{status} ? $r->code() : '';

	if ($r->{error} && $r->{status} =~ /^2/) {
		$r->{status} = 0;
		$text = '';
	}

	return $r if $r->{status} =~ /^2/ || $r->{status} == 503
		|| $o{allow} && $text =~ $o{allow};

	$self->tell('failures', join(' ', $began, $addr, "$method:$path",
		$text || ($refused ? 'refused' : 'cut '
			. ($r->{error} // '') . ' '
			. ($r->{read_error} // ''))));

	return $r;
}

# Records an event; called once the client has the response.

sub note {
	my ($self, @words) = @_;

	$self->tell('history', "@words");
}

# Returns the body for a name: from the pool, or derived from the name.

sub bytes {
	my ($self, $name) = @_;

	my ($made) = grep { $_->{name} eq $name } @{ $self->{pool} };

	return $made ? $made->{data} : body($name);
}

sub body { return Test::Xet::Crowd::body($_[0], 60000) }

# Makes n files for the pool, each with one xorb in two encodings.

sub make {
	my ($t, $n) = @_;

	return map {
		my $data = mix(1000 + $_, 60000 + 1000 * $_);
		my ($file, $other) = map { $t->upload($data, scheme => $_,
			send => 0) } qw/ lz4 none /;

		for my $i (0 .. $#{ $file->{xorbs} }) {
			my ($x, $y) = map { $_->{xorbs}[$i] } $file, $other;

			$x->{bytes} = [ $x->{bytes}, $y->{bytes} ];
		}

		+{ %$file, data => $data, name => "made-$_" };
	} 1 .. $n;
}

1;
