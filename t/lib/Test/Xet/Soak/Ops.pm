package Test::Xet::Soak::Ops;

# Copyright (C) the ngx_http_xet_module authors

# Provides the operations of a run, as methods of Test::Xet::Soak.  An operation
# returns a list of phases, each a list of requests.  Its choices depend on the
# seed, the step and earlier requests, never on a response.

use warnings;
use strict;

use Time::HiRes qw/ sleep /;

use Test::Xet::Bytes;
use Test::Xet::Process qw/ slurp spew /;
use Test::Xet::Soak::World;

my %weights = (
	send => 20, twice => 10, reencode => 10, register => 8, put => 12,
	delete => 5, get => 14, line => 6, abort => 6, bad => 4, attack => 8,
	dedup => 6, grant => 3, url => 5, include => 5, gc => 7, drop => 1,
	handover => 4
);

# Operations that never run concurrently with other operations, by weight.

my %alone = (damage => 5, heal => 5, swap => 1);

my %faults = (kill => 10, reload => 5, terminate => 5, restart => 1);

sub names { return (keys %weights, keys %alone, keys %faults) }

sub step {
	my ($self, $step) = @_;

	my $rng = Test::Xet::Soak::Random->new($self->{seed}, 'step', $step);
	my $world = $self->world($step);
	my %use = map { $_ => $weights{$_} } grep { !$self->{without}{$_} }
		keys %weights;
	my %lone = map { $_ => $alone{$_} } grep { !$self->{without}{$_} }
		keys %alone;
	my %fault = map { $_ => $faults{$_} } grep { !$self->{without}{$_} }
		keys %faults;

	@$self{qw/ step files /} = ($step, {});

	if (%lone && $rng->chance(8)) {
		my $op = 'op_' . $rng->weighted(\%lone);

		$self->$op($rng, $world);

	} else {
		my $fault = %fault && $rng->chance(4)
			? 'fault_' . $rng->weighted(\%fault) : undef;
		my @phases;

		for (1 .. 1 + $rng->int(4)) {
			my $op = 'op_' . $rng->weighted(\%use);
			my @made = $self->$op($rng, $world);

			push @{ $phases[$_] }, @{ $made[$_] } for 0 .. $#made;
		}

		$self->phase($rng, $_, $fault && $rng->chance(60)
			? (fault => sub { $self->$fault($rng) }) : ())
			for @phases;

		$self->come_again();
	}

	$self->check_metrics($rng->int(2)) if $rng->chance(20);

	my @check = map { $self->{files}{$_} } sort keys %{ $self->{files} };

	push @check, $rng->pick(@{ $world->{files} });

	$self->check_file($rng, $_) for @check;
	$self->check_url($rng->pick(@{ $self->{urls} })) if $self->{urls};

	my ($line) = $self->complaints();
	$self->violation('log', $line) if defined $line;
}

# Returns the data of a step.  It changes every part_steps steps; URLs and files
# of the previous part may still be used.

sub world {
	my ($self, $step) = @_;

	my $part = int(($step - 1) / $self->{part_steps});

	return $self->{worlds}{$part} ||= do {
		delete $self->{worlds}{$_} for grep { $_ < $part - 1 }
			keys %{ $self->{worlds} };
		delete $_->{tokens} for @{ $self->{nodes} };

		Test::Xet::Soak::World->new($self->{seed}, $part);
	};
}

sub touch {
	my ($self, @files) = @_;

	$self->{files}{$_->{hash}} = $_ for @files;
}

# Records some files of the world that use a xorb, to check them later.

sub touch_xorb {
	my ($self, $rng, $world, $xorb) = @_;

	my @using = grep { my $file = $_; $file->{root} == $xorb
		|| grep { $_->[0] == $xorb } @{ $file->{terms} } }
		@{ $world->{files} };

	$self->touch($rng->pick(@using)) if @using;
	$self->touch(grep { $_->{root} == $xorb } @using);
}

# Returns a random subject, but never "the whole": files of that subject would
# keep data stored, and so hide that other subjects' files are lost.

sub subject {
	my ($self, $rng) = @_;

	return $rng->pick(grep { !$self->{model}->is_whole($_) }
		@{ $self->{subjects} });
}

# --------------------------------------------------------------------------
# requests

sub refused {
	my ($self, $req, $r, @about) = @_;

	# a file that is registered while its xorb is repaired must be sent
	# again

	return if $r->{status} == 503
		&& $r->{body} =~ /replaced or removed|of the file is locked/
		&& grep { $_ != $req && $_->{xorb}
			&& $self->{model}{broken}{$_->{xorb}{hash}} }
			@{ $self->{running} };

	$self->violation('refused', "$req->{text}: $r->{status} "
		. substr($r->{body} // '', 0, 200), @about)
		unless $self->{swapped};
}

# Returns whether a response correctly says that data must be sent again,
# because it was deleted or collected during its registration.

sub meanwhile {
	my ($self, $req, $r, @files) = @_;

	my $body = $r->{body} // '';
	my $told = $r->{status} == 503 || $body =~ /"retryable":true/
		|| $req->{method} eq 'POST' && $body =~ /not stored here/;

	return 0 unless $told;

	return 1 if $self->{collecting} || $req->{lost};
	return grep { $self->races($req, $_, 'del', 1) } @files;
}

sub xorb_req {
	my ($self, $rng, $world, $subject, $xorb, %o) = @_;

	my $encoding = $o{encoding}
		// ($self->{without}{encodings} ? 'auto'
			: Test::Xet::Soak::World::encoding($rng));

	$self->{model}->learn($subject, @{ $xorb->{chunks} });
	$self->{sent}{$xorb->{hash}} = 1;

	my $req = {
		subject => $subject, node => $o{node} // $rng->int(2),
		method => 'POST', body => $world->encode($xorb, $encoding,
			$rng),
		uri => "/api/v1/xorbs/default/$xorb->{hash}",
		chunked => $rng->chance(20), abort => $o{abort},
		xorb => $xorb,
		text => "xorb $xorb->{name} $encoding by $subject"
			. (defined $o{abort} ? ' broken off' : '')
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		return if $unknown;
		return $self->refused($req, $r, $xorb) if $r->{status} != 200;

		$self->{model}->acked_xorb($subject, $xorb);
		$self->{stored}{$xorb->{hash}} = 1;
	};

	return $req;
}

sub shard_req {
	my ($self, $rng, $subject, $files, %o) = @_;

	my $model = $self->{model};
	my ($must, $may, $name);

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'POST',
		uri => '/api/v' . $rng->pick(1, 2) . '/shards',
		body => Test::Xet::Soak::World::shard($files, %o)->{bytes},
		add => $files, chunked => $rng->chance(20),
		text => 'shard ' . join(', ', map { $_->{name} } @$files)
			. " by $subject" . ($o{text} // '')
	};

	$req->{before} = sub {
		my @xorbs = map { map { $_->[0] } @{ $_->{terms} } } @$files;

		$may = $model->has($subject, map { @{ $_->{chunks} } }
			@$files);
		$may ||= !($name = $self->name_known($o{name}))
			if defined $o{name};
		$req->{lost} = grep { !$model->brought($subject, $_) } @xorbs;
		$must = !$self->{collecting}
			&& !grep({ $self->races($req, $_, 'del', 1) } @$files)
			&& !grep { !$model->brought($subject, $_)
				|| $model->{damage}{$_->{hash}} } @xorbs;
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		my $result = $unknown ? undef : shard_result($r);

		$self->touch(@$files);

		# a collected xorb can't be recognized by its name

		if (defined $result && !$may && defined $o{name}
			&& $self->name_known($o{name}) ne $name)
		{
			$may = 1;
		}

		$model->learn($subject, map { @{ $_->{chunks} } } @$files)
			if defined $result && defined $o{name} && $may;

		if (defined $result && !$may) {
			$self->violation('privacy', "$req->{text}: he does not"
				. ' have what he has registered', @$files);
		}

		return $self->refused($req, $r, @$files,
			map { map { $_->[0] } @{ $_->{terms} } } @$files)
			if !$unknown && !defined $result && $must && $may
				&& ($o{rows} // 1) && !$o{verify};

		if ($o{again} && !$unknown && !defined $result) {
			return $self->refused($req, $r, @$files)
				unless $self->meanwhile($req, $r, @$files);
			push @{ $self->{again} }, $o{again};
		}

		for my $file (@$files) {
			if (defined $result) {
				$model->acked_file($subject, $file,
					$self->races($req, $file, 'del')
					? 'maybe' : 'yes');

			} elsif ($unknown && $may
				&& $model->sees($subject, $file) ne 'yes')
			{
				$model->see($subject, $file, 'maybe');
			}
		}
	};

	return $req;
}

# Returns the result from a response of v1/shards, or from the last frame of a
# response of v2/shards; undef if the shard was rejected.

sub shard_result {
	my ($r) = @_;

	return undef if $r->{status} != 200 || $r->{error};
	return $1 if $r->{body} =~ /"result":([01])\}\s*\z/;
	return undef;
}

sub put_req {
	my ($self, $rng, $subject, $file, %o) = @_;

	my $model = $self->{model};

	$model->learn($subject, @{ $file->{chunks} });

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'PUT',
		uri => '/api/v1/files', body => $file->{data}, add => [ $file ],
		chunked => $rng->chance(30), abort => $o{abort},
		text => "PUT $file->{name} by $subject"
			. (defined $o{abort} ? ' broken off' : '')
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		$self->touch($file);

		if ($unknown) {
			$model->see($subject, $file, 'maybe')
				if $model->sees($subject, $file) ne 'yes';
			return;
		}

		if ($self->meanwhile($req, $r, $file)) {
			push @{ $self->{again} }, $o{again} if $o{again};
			return;
		}

		return $self->refused($req, $r, $file) if $r->{status} != 200
			|| ($r->json() // {})->{hash} ne $file->{hash};

		$model->acked_file($subject, $file,
			$self->races($req, $file, 'del') ? 'maybe' : 'yes');
	};

	return $req;
}

# --------------------------------------------------------------------------
# operations

# Sends the xorbs of a file concurrently and then a shard, as hf_xet does.

sub op_send {
	my ($self, $rng, $world) = @_;

	my $subject = $self->subject($rng);
	my $file = $rng->pick(@{ $world->{files} });
	my %xorbs = map { $_->[0]{hash} => $_->[0] } @{ $file->{terms} };

	# the shard may also hold another file of the same xorbs

	my @more = grep { $_ != $file && !grep { !$xorbs{$_->[0]{hash}} }
		@{ $_->{terms} } } @{ $world->{files} };
	my @files = ($file, @more && $rng->chance(30)
		? $rng->pick(@more) : ());

	return $self->send_reqs($rng, $world, $subject, \@files, 0);
}

sub send_reqs {
	my ($self, $rng, $world, $subject, $files, $n) = @_;

	my %xorbs = map { $_->[0]{hash} => $_->[0] }
		map { @{ $_->{terms} } } @$files;

	return ([ map { $self->xorb_req($rng, $world, $subject, $xorbs{$_}) }
		sort keys %xorbs ],
		[ $self->shard_req($rng, $subject, $files, again => sub {
			$self->once_more($n + 1, \&send_reqs, $world,
				$subject, $files) }) ]);
}

# Repeats the requests of a subject after a concurrent collection, with no other
# requests.  They may be rejected again only if a collector runs all the time,
# and only a limited number of times.

sub once_more {
	my ($self, $n, $reqs, @what) = @_;

	$self->violation('refused', "$n times in a row, of what is sent again",
		grep { ref eq 'HASH' } map { ref eq 'ARRAY' ? @$_ : $_ } @what)
		if $n > ($self->{collects} ? 8 : 1);

	my $rng = Test::Xet::Soak::Random->new($self->{seed}, 'again',
		$self->{step}, $self->{repeats}++);

	$self->phase($rng, $_) for $self->$reqs($rng, @what, $n);
}

sub come_again {
	my ($self) = @_;

	while (my $again = shift @{ $self->{again} }) {
		$again->();
	}

	delete $self->{repeats};
}

# Sends one xorb in two encodings at the same time, to both nodes.

sub op_twice {
	my ($self, $rng, $world) = @_;

	my $xorb = $rng->pick(@{ $world->{xorbs} });

	$self->touch_xorb($rng, $world, $xorb);

	return [ map { $self->xorb_req($rng, $world, $self->subject($rng),
		$xorb, node => $_) } 0, 1 ];
}

# Sends a known xorb again, in any encoding.

sub op_reencode {
	my ($self, $rng, $world) = @_;

	my @sent = grep { $self->{sent}{$_->{hash}} } @{ $world->{xorbs} }
		or return;
	my $xorb = $rng->pick(@sent);

	$self->touch_xorb($rng, $world, $xorb);

	return [ $self->xorb_req($rng, $world, $self->subject($rng), $xorb) ];
}

# Registers a file of chunks that the subject has, without sending them: the
# xorbs may exist, be missing, or be damaged.

sub op_register {
	my ($self, $rng, $world) = @_;

	my $subject = $self->subject($rng);
	my @files = grep { $self->{model}->has($subject, @{ $_->{chunks} }) }
		@{ $world->{files} } or return;

	return [ $self->shard_req($rng, $subject, [ $rng->pick(@files) ]) ];
}

sub op_put {
	my ($self, $rng, $world) = @_;

	return $self->put_reqs($rng, $world, $self->subject($rng),
		$rng->pick(grep { $_->{put} } @{ $world->{files} }), 0);
}

sub put_reqs {
	my ($self, $rng, $world, $subject, $file, $n) = @_;

	return [ $self->put_req($rng, $subject, $file, again => sub {
		$self->once_more($n + 1, \&put_reqs, $world, $subject,
			$file) }) ];
}

sub op_delete {
	my ($self, $rng, $world) = @_;

	my $subject = $rng->chance(6) ? 'nobody'
		: $self->{whole} && $rng->chance(25) ? 's'
		: $self->subject($rng);

	return $self->delete_reqs($rng, $subject,
		$rng->pick(@{ $world->{files} }),
		$rng->chance(15) ? $rng->pick(qw/ read write /) : 'delete');
}

sub delete_reqs {
	my ($self, $rng, $subject, $file, $scope) = @_;

	my $model = $self->{model};
	my $refusal = $self->{mode} eq 'store' ? 0
		: $subject eq 'nobody' ? 401 : $scope ne 'delete' ? 403 : 0;

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'DELETE',
		scope => $scope,
		uri => "/api/v1/files/$file->{hash}",
		$refusal ? () : (del => [ $file ]),
		text => "DELETE $file->{name} by $subject, who may $scope"
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		my $state = $model->sees($subject, $file);
		my $races = $self->races($req, $file, 'add');
		my $repos = $model->is_whole($subject)
			? $model->in_repos($file) : 'no';

		$self->touch($file);

		if ($r->{status} == 409 && !$refusal) {
			$self->refused($req, $r, $file)
				if $repos eq 'no' && !$races
				&& !$self->races($req, $file, 'del');
			return;
		}

		$self->violation('deleted', "$req->{text}, which repos have",
			$file) if $r->{status} == 204 && $repos eq 'yes'
				&& !$races && !$self->races($req, $file, 'del');

		if ($refusal) {
			$self->violation('privacy', "$req->{text}: "
				. $r->{status}, $file)
				if !$unknown && $r->{status} != $refusal;

		} elsif ($unknown || $races) {
			$model->see($subject, $file, 'maybe')
				if $state eq 'yes' || $races;

		} elsif ($r->{status} == 204) {
			$model->see($subject, $file, 'no');

		} elsif ($r->{status} != 404 || $state eq 'yes'
			&& !$self->races($req, $file, 'del'))
		{
			$self->refused($req, $r, $file);
		}
	};

	return [ $req ];
}

# Deletes a complete repo, naming it, a wrong repo or none in the request; the
# next upload creates the repo again.

sub op_drop {
	my ($self, $rng, $world) = @_;

	my $model = $self->{model};
	my $subject = $self->subject($rng);
	my $name = $rng->pick('', "?name=$subject/$subject", '?name=x/y');
	my $status = $self->{mode} ne 'repo' || $model->is_whole($subject)
		? 403 : $name =~ /x/ ? 409 : 204;

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'DELETE',
		scope => 'delete', uri => "/api/v1/repo$name",
		$status == 204 ? (del_all => 1) : (),
		text => "DELETE repo$name by $subject"
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		$model->dropped($subject) if $status == 204;

		return if $unknown && $status != 204;

		if (!$unknown && $r->{status} != $status) {
			return $self->refused($req, $r)
				if $r->{status} != 404 || $status == 403
					|| $status == 204
					&& $model->seen($subject, 'yes')
					&& !$self->races($req,
						{ hash => '' }, 'del');
			return;
		}

		return if $status != 204;

		for my $hash ($model->seen($subject)) {
			$model->see($subject, { hash => $hash }, $unknown
				|| $self->races($req, { hash => $hash }, 'add')
				? 'maybe' : 'no');
		}

		$self->touch($rng->pick(@{ $world->{files} })) for 1 .. 4;
	};

	return [ $req ];
}

# Makes a subject upload a file, another subject register it, and the first
# subject delete it.

sub op_handover {
	my ($self, $rng, $world) = @_;

	my $file = $rng->pick(grep { $_->{put} } @{ $world->{files} });
	my $first = $self->subject($rng);
	my $second = $self->{whole} && $rng->chance(60) ? 's'
		: $rng->pick(grep { $_ ne $first } @{ $self->{subjects} });

	return (map({ $self->put_reqs($rng, $world, $_, $file, 0) }
		$first, $second),
		$self->delete_reqs($rng, $first, $file, 'delete'),
		$self->op_gc($rng, $world));
}

sub read_req {
	my ($self, $rng, $world, $subject) = @_;

	my $file = $rng->pick(@{ $world->{files} });
	my $size = length($file->{data});
	my ($from, $to) = sort { $a <=> $b } $rng->int($size),
		$rng->int($size);

	return $self->get_req($subject, $file, node => $rng->int(2),
		$rng->chance(10) ? (method => 'HEAD') : (),
		$rng->chance(40) ? (range => [ $from, $to ]) : ());
}

sub op_get {
	my ($self, $rng, $world) = @_;

	my $req = $self->read_req($rng, $world,
		$rng->pick(@{ $self->{subjects} }, 'nobody'));

	if ($req->{method} eq 'GET') {
		$req->{slow} = 200000 if $rng->chance(15);
		$req->{abort} = $rng->int(100000) if $rng->chance(15);
	}

	return [ $req ];
}

# Pipelines several requests on one connection.

sub op_line {
	my ($self, $rng, $world) = @_;

	my $subject = $rng->pick(@{ $self->{subjects} }, 'nobody');
	my @line;

	for (1 .. 2 + $rng->int(6)) {
		push @line, $rng->chance(60)
			? $self->read_req($rng, $world, $subject)
			: $self->small_req($rng, $world, $subject);
	}

	$_->{before}->($_) for grep { $_->{before} } @line;

	return [ { subject => $subject, node => $rng->int(2), line => \@line,
		text => 'in a line: ' . join(', ', map { $_->{text} } @line) }
	];
}

# Returns a request that reveals nothing, but must get a response.

sub small_req {
	my ($self, $rng, $world, $subject) = @_;

	my $xorb = $rng->pick(@{ $world->{xorbs} });
	my ($method, $uri) = @{ $rng->pick(
		[ 'GET', '/api/v1/health' ],
		[ 'HEAD', "/api/v1/xorbs/default/$xorb->{hash}" ],
		[ 'HEAD', "/api/v2/reconstructions/$xorb->{hash}" ],
		[ 'GET', '/api/v1/files/' . '0' x 64 ],
		[ 'GET', '/api/v1/files/xyz' ],
		[ 'PUT', '/api/v1/chunks/default/' . '1' x 64 ],
		[ 'GET', '/api/v1/chunks/default/' . '1' x 64 ]) };

	return { subject => $subject, method => $method, uri => $uri,
		text => "$method " . $uri =~ s!/\w{64}$!!r,
		done => sub { } };
}

sub op_abort {
	my ($self, $rng, $world) = @_;

	my $subject = $self->subject($rng);

	if ($rng->chance(50)) {
		my $file = $rng->pick(grep { $_->{put} } @{ $world->{files} });

		return [ $self->put_req($rng, $subject, $file,
			abort => $rng->int(length($file->{data}))) ];
	}

	return [ $self->xorb_req($rng, $world, $subject,
		$rng->pick(@{ $world->{xorbs} }), abort => $rng->int(50000)) ];
}

# Sends bodies that do not match their hash or format; they change nothing.

sub op_bad {
	my ($self, $rng, $world) = @_;

	my $xorb = $rng->pick(@{ $world->{xorbs} });
	my $req = $self->xorb_req($rng, $world, $self->subject($rng), $xorb,
		$self->{without}{encodings} ? () : (encoding => 'none'));
	my $how = $rng->pick(qw/ flip cut hash /);

	substr($req->{body}, -1) ^= "\x01" if $how eq 'flip';
	substr($req->{body}, -1) = '' if $how eq 'cut';
	$req->{uri} =~ s/.$/$& eq '0' ? 1 : 0/e if $how eq 'hash';
	$req->{text} .= ", $how";

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		$self->violation('bytes', "$req->{text}: $r->{status}", $xorb)
			unless $unknown || $r->{status} == 400;
	};

	$self->touch_xorb($rng, $world, $xorb);

	return [ $req ];
}

# --------------------------------------------------------------------------
# attacks

# Registers a file of chunks that the subject does not have, using hashes that
# may have leaked: names of xorbs, which are also the hashes of their only
# chunks.  The response must be the same as for a xorb that does not exist.

sub op_attack {
	my ($self, $rng, $world) = @_;

	my $model = $self->{model};
	my $subject = $self->subject($rng);

	return if $self->{mode} ne 'repo' || $model->is_whole($subject);

	my @foreign = grep { $self->{sent}{$_->{hash}}
		&& !$model->has($subject, @{ $_->{chunks} }) }
		@{ $world->{xorbs} } or return;

	my $xorb = $rng->pick(@foreign);

	# the server can't keep a name secret if it does not know the xorb

	my ($at) = grep { $self->{stored}{$xorb->{chunks}[$_]{hash}}
		&& !$model->has($subject, $xorb->{chunks}[$_]) }
		0 .. $#{ $xorb->{chunks} };
	my @term = defined $at && $rng->chance(70)
		? ($xorb, $at, $at + 1)
		: ($xorb, 0, scalar @{ $xorb->{chunks} });

	my %o = $term[2] - $term[1] == 1 && defined $at ? ()
		: $rng->chance(50) ? (rows => 0) : (verify => 'ab' x 32);

	$o{name} = $xorb->{chunks}[$at]{hash} unless %o;

	my ($file, $ghost) = map { my $one = $_; {
		name => "of $xorb->{name}" . ($one == $xorb ? ''
			: ' as it is not there'),
		chunks => [ @{ $one->{chunks} }[$term[1] .. $term[2] - 1] ],
		terms => [ [ $one, @term[1, 2] ] ]
	} } $xorb, $self->ghost($rng, $xorb);

	$_->{hash} = Test::Xet::Soak::World::shard([ $_ ], %o)
		->{files}[0]{hash} for $file, $ghost;

	$o{text} = " [$term[1], $term[2]), which is not his"
		. ($o{verify} ? ', verification made up'
			: exists $o{rows} ? ', no verification' : '');

	my @reqs = map { $self->shard_req($rng, $subject, [ $_ ], %o) }
		$file, $ghost;
	my @told;

	$reqs[1]{uri} = $reqs[0]{uri};

	for my $req (@reqs) {
		my $done = $req->{done};

		$req->{done} = sub {
			my ($r, $unknown) = @_;

			$done->($r, $unknown);
			$self->{files} = {};

			push @told, $r->{status} . ' '
				. $r->{body} =~ s/[0-9a-f]{64}/HASH/gr
				unless $unknown;

			# the subject may send the chunks concurrently

			$self->violation('told', "$req->{text}: "
				. join(' but ', @told), $xorb)
				if @told == 2 && $told[0] ne $told[1]
				&& !$model->has($subject, @{ $file->{chunks} });
		};
	}

	return map { [ $_ ] } @reqs;
}

# Returns a xorb of other chunks with the same lengths.

sub ghost {
	my ($self, $rng, $xorb) = @_;

	my @chunks = map { { len => $_->{len}, hash => join('',
		map { sprintf('%016x', $rng->int(1 << 62)) } 1 .. 4) } }
		@{ $xorb->{chunks} };

	return { hash => @chunks == 1 ? $chunks[0]{hash} : join('',
		map { sprintf('%016x', $rng->int(1 << 62)) } 1 .. 4),
		chunks => \@chunks };
}

# Checks that a dedup response names no chunk that the subject does not have.

sub op_dedup {
	my ($self, $rng, $world) = @_;

	my $subject = $self->subject($rng);
	my $file = $rng->pick(@{ $world->{files} });
	my $chunk = $file->{chunks}[0];

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'GET',
		uri => "/api/v1/chunks/default/$chunk->{hash}",
		text => "dedup of $file->{name} by $subject"
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		return if $unknown || $r->{status} == 404;
		return $self->refused($req, $r, $file) if $r->{status} != 200;

		$self->told($world, $req, parse_shard($r->{body}), $chunk)
			if $self->{mode} eq 'repo'
				&& !$self->{model}->is_whole($subject);
	};

	return [ $req ];
}

sub told {
	my ($self, $world, $req, $shard, $asked) = @_;

	my $model = $self->{model};

	for my $row (@{ $shard->{xorbs} }) {
		my $xorb = $world->{xorb}{$row->{hash}} or next;
		my @chunks = @{ $xorb->{chunks} };

		$self->violation('told', "$req->{text}: of $xorb->{name}",
			$xorb) if @chunks == 1
			&& !$model->has($req->{subject}, @chunks);

		for my $i (0 .. $#chunks) {
			next if $model->has($req->{subject}, $chunks[$i])
				|| $chunks[$i]{hash} eq $asked->{hash};

			$self->violation('told', "$req->{text}: of chunk $i"
				. " of $xorb->{name}", $xorb)
				if ($row->{chunks}[$i]{hash} // '')
					eq keyed_hash($shard->{footer}{key},
						$chunks[$i]{hash});
		}
	}
}

# Checks that a grant says "need not be sent" only for data that a subject may
# already use.

sub op_grant {
	my ($self, $rng, $world) = @_;

	my $subject = $self->subject($rng);
	my $xorb = $rng->pick(@{ $world->{xorbs} });

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'POST',
		uri => "/api/v1/xorb-grants/default/$xorb->{hash}", body => '',
		text => "grant of $xorb->{name} to $subject"
	};

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		return if $unknown || $r->{status} == 404;
		return $self->refused($req, $r, $xorb) if $r->{status} != 200;

		$self->violation('privacy', $req->{text}, $xorb)
			unless $self->{model}->has($subject,
				@{ $xorb->{chunks} });

		# with 200 the client does not upload the xorb, so the server
		# must have an intact copy; an earlier PUT may have repaired
		# the copy without the model's knowledge

		my $damage = $self->{model}{damage}{$xorb->{hash}};

		return if !$damage || $damage->{kind} eq 'flip'
			|| $self->name_known($xorb->{hash}) eq '';
		return $self->{model}->healed($xorb->{hash})
			if $self->copy_there($xorb);

		$self->violation('readable', "$req->{text}, which is damaged",
			$xorb);
	};

	return [ $req ];
}

# --------------------------------------------------------------------------

sub op_url {
	my ($self, $rng, $world) = @_;

	$self->check_url($rng->pick(@{ $self->{urls} })) if $self->{urls};

	return;
}

# Reads a file through a subrequest of another location.  Any response is right,
# unless it has data that the subject may not read.

sub op_include {
	my ($self, $rng, $world) = @_;

	my $subject = $rng->pick(@{ $self->{subjects} }, 'nobody', 'nobody');
	my $file = $rng->pick(@{ $world->{files} });
	my $route = $rng->pick('v1/files', 'v2/reconstructions', 'v1/files');

	my $req = {
		subject => $subject, node => $rng->int(2), method => 'GET',
		uri => $rng->pick('/ssi/', '/ssi/', '/auth/', '/mirror/'),
		headers => { 'X-Include' => "/api/$route/$file->{hash}" },
		may_fail => 1, $rng->chance(40) ? (slow => 100000) : (),
		$rng->chance(20) ? (abort => $rng->int(30000)) : ()
	};

	$req->{text} = "$route $file->{name} through $req->{uri} by $subject"
		. ($req->{slow} ? ' slowly' : '');

	$req->{done} = sub {
		my ($r, $unknown) = @_;

		return if $unknown || $self->{mode} eq 'store'
			|| $self->{model}->sees($subject, $file) ne 'no'
			|| $self->races($req, $file, 'add');

		my $part = substr($file->{data}, 0, 200);

		$self->violation('privacy', $req->{text}, $file)
			if $r->{body} =~ m!/xorbs/default/!
			|| length($part) == 200
				&& index($r->{body}, $part) >= 0;
	};

	return [ $req ];
}

# --------------------------------------------------------------------------
# damage

sub stored {
	my ($self, $xorb) = @_;

	return glob($self->{t}->store() . '/xorbs/default/'
		. substr($xorb->{hash}, 0, 2) . "/$xorb->{hash}*");
}

# Returns whether the copy that the row names exists and has the row's size.

sub copy_there {
	my ($self, $xorb) = @_;

	my ($copy_id, $size) = split(/\|/, $self->{t}->sql(
		"SELECT lpad(to_hex(copy_id), 8, '0'), stored_size"
		. " FROM xet.xorbs WHERE hash = '\\x"
		. plain_hash($xorb->{hash}) . "'"));

	my ($file) = grep { /\.$copy_id$/ } $self->stored($xorb);

	return defined $file && -s $file == $size;
}

sub op_damage {
	my ($self, $rng, $world) = @_;

	my @sent = grep { $self->{sent}{$_->{hash}} } @{ $world->{xorbs} }
		or return;
	my $xorb = $rng->pick(@sent);
	my $kind = $rng->pick(qw/ flip cut gone /);
	my $at = $rng->int(1 << 30);

	$self->{model}->tick();
	$self->note("damage $xorb->{name}: $kind");

	my @files = $self->stored($xorb) or return;

	for my $file (@files) {
		# a collector may have removed it

		my $bytes = slurp($file, 1) // next;

		# a file truncated to zero can only be removed

		next if $kind ne 'gone' && !length($bytes);

		substr($bytes, $at % length($bytes), 1) ^= "\x10"
			if $kind eq 'flip';
		$bytes = substr($bytes, 0, $at % length($bytes))
			if $kind eq 'cut';

		# in place: a process may have the file open

		unlink($file), next if $kind eq 'gone';
		open(my $out, '+<:raw', $file) or next;
		syswrite($out, $bytes);
		truncate($out, length($bytes));
	}

	$self->{touched}{$xorb->{hash}} = 1;
	$self->{model}->damaged($xorb->{hash}, $kind);
	$self->touch_xorb($rng, $world, $xorb);
}

# Sends all damaged data again, each xorb as a subject that has it.

sub op_heal {
	my ($self, $rng, $world) = @_;

	my $model = $self->{model};

	for my $hash (sort keys %{ $model->{damage} }) {
		my ($of) = grep { $_->{xorb}{$hash} }
			values %{ $self->{worlds} };
		my $xorb = $of->{xorb}{$hash};
		my ($subject) = grep { $model->has($_, @{ $xorb->{chunks} }) }
			@{ $self->{subjects} };
		my @files = grep { grep { $_ eq $hash }
			@{ $self->{plans}{$_->{hash}} || [] } }
			@{ $of->{files} };

		for (1 .. 3) {
			last unless $model->{damage}{$hash};

			# reads, so that the server notices the damage

			$self->check_file($rng, $_) for @files;
			$model->{damage}{$hash}{noticed} = 1;
			sleep(0.1);

			$self->phase($rng, [ $self->xorb_req($rng, $of,
				$subject, $xorb) ]);
		}

		$self->touch(@files);
		$self->touch_xorb($rng, $of, $xorb);
	}
}

# Replaces the store by an empty folder, as if its disk were not mounted.  The
# server must not acknowledge data that is missing later.

sub op_swap {
	my ($self, $rng, $world) = @_;

	my $store = $self->{t}->store();
	my ($uid, $gid) = (stat($store))[4, 5];

	$self->note('an empty store');

	rename($store, "$store.full") or die "rename: $!\n";
	mkdir($store);
	chown($uid, $gid, $store);
	$_->reload() for @{ $self->{nodes} };

	local $self->{swapped} = 1;

	for (1 .. 3) {
		my ($xorbs, $shard) = $self->op_send($rng, $world);

		$self->phase($rng, $xorbs);
		$self->phase($rng, [ $shard->[0], @{ $self->op_put($rng,
			$world) } ]);
	}

	$self->note('the store is back');

	rename($store, "$store.empty") or die "rename: $!\n";
	rename("$store.full", $store) or die "rename: $!\n";
	File::Path::remove_tree("$store.empty");
	$_->reload() for @{ $self->{nodes} };
	$self->settle();
}

# --------------------------------------------------------------------------
# faults

sub fault_kill {
	my ($self, $rng) = @_;

	my $node = $self->node($rng->int(2));
	my @pids = $node->worker_pids();
	my $pid = $rng->pick(@pids);

	$self->note('kill -9 of a worker');
	push @{ $self->{allow} }, qr/worker process $pid exited on signal 9/;
	$node->kill_worker('KILL', $pid);
}

sub fault_reload {
	my ($self, $rng) = @_;

	$self->note('reload');
	$self->node($rng->int(2))->reload();
}

sub fault_terminate {
	my ($self, $rng) = @_;

	$self->note('sessions of PostgreSQL are ended');
	$self->{t}->pg_terminate();
}

sub fault_restart {
	my ($self, $rng) = @_;

	my $how = $rng->pick(qw/ fast immediate /);

	$self->note("PostgreSQL is restarted, $how");
	$self->{t}->pg_restart($how);
}

1;
