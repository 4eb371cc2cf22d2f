// deliveries.js shows the list of deliveries.

import {el} from './dom.js';

/** show is the view of deliveries. */
export function show(root) {
  root.append(el('p', {class: 'message'}, 'Deliveries are listed with `waybill events list`.'));
  return {close() {}};
}
